"""Command lines: values, defaults, help, errors in one line."""

import dataclasses
import errno

import pytest

from bert_common import VERSION
from bert_common.errors import InputError
from model_formats.encoders import ENCODERS
from run_scripts.flags.declaration import PerModel, flag, resolve_model_defaults
from run_scripts.flags.parser import parse, run_program
from tests.support.refusals import refused


@dataclasses.dataclass(frozen=True)
class CopyFlags:
    """Copies a file.

    As often as it is told to."""

    source: str = flag(None, "The file to copy.", required=True)
    times: int = flag(1, "How often.")
    limit: int | None = flag(None, "At most so many bytes.")
    rate: float = flag(PerModel(0.5, {"albert": 2.0}), "Copies a second.")
    overwrite: bool = flag(PerModel(False, {"albert": True}), "Whether files are replaced.")
    quiet: bool = flag(False, "Whether to be silent.")
    mode: str = flag("fast", "The way to copy.", choices=("fast", "slow"))


def read(*arguments):
    """The values of a command line that has its required flag."""
    return parse(CopyFlags, ["copy", "--source=a.txt", *arguments])


# Command lines that mean the same -> the values that are not the defaults.
MEANT = {
    "": {},
    "--times=3; -times=3; --times 3; --times=9 --times=3": {"times": 3},
    "--limit=-7": {"limit": -7},
    "--rate=3; --rate=3.0; --rate=3e0": {"rate": 3.0},
    "--overwrite; --overwrite=true; --overwrite=1; --overwrite=True": {"overwrite": True},
    "--nooverwrite; --overwrite=false; --overwrite=0": {"overwrite": False},
    "--quiet": {"quiet": True},
    "--mode=slow --noquiet": {"mode": "slow"},
    "--source=b,*.txt,한국어=x": {"source": "b,*.txt,한국어=x"},
}


@pytest.mark.parametrize("ways", MEANT)
def test_values(ways):
    for arguments in ways.split("; "):  # repr: 3 is not 3.0
        expected = dataclasses.replace(CopyFlags("a.txt"), **MEANT[ways])
        assert repr(read(*arguments.split())) == repr(expected)


def test_defaults_of_a_third_encoder(monkeypatch):
    """They are those of the encoder that its record names, unless a table names it."""
    for name, defaults in (("like_bert", "bert"), ("like_albert", "albert")):
        record = dataclasses.replace(ENCODERS["bert"], name=name, title=name, defaults=defaults)
        monkeypatch.setitem(ENCODERS, name, record)
    table = PerModel(1, {"albert": 2})
    found = [table.of(name) for name in ("bert", "albert", "like_bert", "like_albert")]
    assert found == [1, 2, 1, 2] and table.by_title() == {"BERT": 1, "ALBERT": 2}
    table = PerModel(1, {"albert": 2, "like_albert": 3})
    assert table.of("like_albert") == 3
    assert [*table.by_title().items()][2:] == [("like_albert", 3)]


@pytest.mark.parametrize(
    "arguments, model_type, known, expected",
    (
        ("", "bert", {}, (0.5, False, None)),
        ("", "albert", {}, (2.0, True, None)),
        # Given stays given, though it is the other model's default.
        ("--rate=0.5 --nooverwrite", "albert", {}, (0.5, False, None)),
        ("--rate=2.0 --overwrite", "bert", {}, (2.0, True, None)),
        # What is known of a file counts more than a default, and less than what is given.
        ("", "albert", {"rate": 3.0, "limit": 8}, (3.0, True, 8)),
        ("--rate=0.5 --limit=7", "albert", {"rate": 3.0, "limit": 8}, (0.5, True, 7)),
    ),
)
def test_model_type_defaults_fill_only_what_is_not_given(arguments, model_type, known, expected):
    values = resolve_model_defaults(read(*arguments.split()), model_type, **known)
    assert (values.rate, values.overwrite, values.limit) == expected
    assert values.source == "a.txt" and values.times == 1


# A command line -> what its message holds.
REFUSED = {
    "": ("--source must be given", "The file to copy."),
    "--source=": ("--source must be given",),
    "--source=a --tims=3": ("'tims'", "Did you mean: times", "--help"),
    "--source=a --zzzzzz": ("'zzzzzz'",),
    "--source=a --tim=3": ("'tim'",),  # no abbreviations
    "--source=a --notimes": ("'notimes'",),
    "--source=a --times=two": ("--times",),
    "--source=a --times=1.5": ("--times",),
    "--source=a --times": ("--times",),
    "--source=a --rate=fast": ("--rate",),
    "--source=a --overwrite=perhaps": ("--overwrite",),
    "--source=a --noquiet=true": ("--noquiet",),
    "--source=a --mode=medium": ("--mode",),
    "--source=a --limit=": ("--limit",),
    "--source=a b.txt": ("b.txt", "--name=value"),
    "--source=a --times=2 b.txt": ("b.txt", "--name=value"),
    "--source=a b.txt --times=2": ("b.txt", "--name=value"),
    "--source=a -- b.txt": ("b.txt", "--name=value"),
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_refused(arguments, capsys):
    with refused(*REFUSED[arguments]):
        parse(CopyFlags, ["copy", *arguments.split()])
    assert run_program(None, CopyFlags, ["copy", *arguments.split()]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1


def raising(error):
    """A program that fails."""

    def program(values):
        raise error

    return program


def test_status_of_a_run_is_0(capsys):
    seen = []
    assert run_program(seen.append, CopyFlags, ["copy", "--source=a"]) == 0
    assert seen == [CopyFlags("a")] and capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "error, line",
    (
        (
            InputError("the file must\tbe UTF-8.   Received: b"),
            "the file must be UTF-8. Received: b",
        ),
        (FileNotFoundError(errno.ENOENT, "No such file", "a/b"), "No such file: a/b"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "a"), "Is a directory: a"),
        (OSError(errno.ENOSPC, "No space left"), "No space left: while reading or writing"),
        (KeyboardInterrupt(), "interrupted"),
    ),
    ids=repr,
)
def test_what_a_user_can_mend_is_one_line_with_status_1(error, line, capsys):
    assert run_program(raising(error), CopyFlags, ["copy", "--source=a"]) == 1
    assert capsys.readouterr() == ("", f"error: {line}\n")


@pytest.mark.parametrize(
    "error",
    (ValueError("a bug"), RuntimeError("a bug"), OSError(errno.EBADF, "a bug"), OSError("a bug")),
    ids=repr,
)
def test_bug_is_not_swallowed(error, capsys):
    with pytest.raises(type(error)) as caught:
        run_program(raising(error), CopyFlags, ["copy", "--source=a"])
    assert caught.value is error and capsys.readouterr().err == ""


@pytest.mark.parametrize("spelling", ("--help", "-h", "-help"))
def test_help_of_a_program(spelling, capsys):
    assert run_program(raising(AssertionError()), CopyFlags, ["dir/copy.py", spelling]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("copy.py: Copies a file.\n\nAs often as it is told to.\n")
    assert [line.strip() for line in out.splitlines() if line.startswith("  --")] == [
        "--source=<str>  (required)",
        "--times=<int>  (default: 1)",
        "--limit=<int>  (not set)",
        "--rate=<float>  (default: BERT 0.5, ALBERT 2.0)",
        "--overwrite=<bool>  (default: BERT false, ALBERT true)",
        "--quiet=<bool>  (default: false)",
        "--mode=<fast|slow>  (default: fast)",
        "--flagfile=<path>",
        "--version",
    ]


def test_version_of_a_program(capsys):
    assert run_program(raising(AssertionError()), CopyFlags, ["dir/copy.py", "--version"]) == 0
    assert capsys.readouterr().out == f"copy.py {VERSION}\n"
