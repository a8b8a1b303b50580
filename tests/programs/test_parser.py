"""Command lines: values, defaults, flag files, help, errors in one line."""

import dataclasses
import errno

import pytest

from bert_common import VERSION
from bert_common.errors import InputError
from model_formats.encoders import ENCODERS
from run_scripts.flags.declaration import PerModel, flag, resolve_model_defaults
from run_scripts.flags.parser import parse, run_program


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


def refusal(*arguments):
    """The message of the InputError that a command line raises."""
    with pytest.raises(InputError) as caught:
        parse(CopyFlags, ["copy", *arguments])
    return str(caught.value)


def test_types():
    values = read(
        "--times=3", "--limit=-7", "--rate=1e-3", "--overwrite", "--noquiet", "--mode=slow"
    )
    assert values == CopyFlags("a.txt", 3, -7, 0.001, True, False, "slow")
    kinds = [type(getattr(values, field.name)) for field in dataclasses.fields(values)]
    assert kinds == [str, int, int, float, bool, bool, str]
    assert type(read("--rate=3").rate) is float


def test_ways_to_write_a_value():
    assert read("--times", "3").times == read("--times=3").times == read("-times=3").times == 3
    assert read("--times=3", "--times=4").times == 4
    for yes in ("--overwrite", "--overwrite=true", "--overwrite=1", "--overwrite=True"):
        assert read(yes).overwrite is True
    for no in ("--nooverwrite", "--overwrite=false", "--overwrite=0"):
        assert read(no).overwrite is False


def test_value_with_commas_globs_or_hangul_comes_through():
    value = "a b,*.txt,한국어=x"
    assert parse(CopyFlags, ["copy", f"--source={value}"]).source == value


def test_defaults():
    values = read()
    assert (values.times, values.limit, values.quiet, values.mode) == (1, None, False, "fast")
    assert values.rate == PerModel(0.5, {"albert": 2.0}) and values.overwrite == PerModel(
        False, {"albert": True}
    )


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


def test_model_type_defaults_fill_only_what_is_not_given():
    bert, albert = (resolve_model_defaults(read(), model_type) for model_type in ("bert", "albert"))
    assert (bert.rate, bert.overwrite) == (0.5, False)
    assert (albert.rate, albert.overwrite) == (2.0, True)
    # Given stays given, though it is the other model's default.
    values = resolve_model_defaults(read("--rate=0.5", "--nooverwrite"), "albert")
    assert (values.rate, values.overwrite) == (0.5, False)
    values = resolve_model_defaults(read("--rate=2.0", "--overwrite"), "bert")
    assert (values.rate, values.overwrite) == (2.0, True)
    assert values.source == "a.txt" and values.times == 1
    # What is known of a file counts more than a default, and less than what is given.
    for argv, expected in (((), (3.0, 8)), (("--rate=0.5", "--limit=7"), (0.5, 7))):
        values = resolve_model_defaults(read(*argv), "albert", rate=3.0, limit=8)
        assert (values.rate, values.limit) == expected


def test_two_parses_do_not_share_values():
    read("--times=9", "--rate=9", "--quiet")
    assert read() == CopyFlags("a.txt")


def test_flagfile(tmp_path):
    path = tmp_path / "flags.txt"
    path.write_text("# a comment\n// another\n\n--nooverwrite\n--times=4\n  --mode=slow\n")
    for written in ([f"--flagfile={path}"], ["--flagfile", str(path)]):
        values = read(*written)
        assert (values.times, values.mode, values.overwrite) == (4, "slow", False)
        assert resolve_model_defaults(values, "albert").overwrite is False  # given, by the file
    assert read(f"--flagfile={path}", "--times=5").times == 5
    # What the command line says itself counts, wherever it stands.
    assert read("--times=5", f"--flagfile={path}").times == 5
    assert read("--times", "5", "--overwrite", f"--flagfile={path}").overwrite is True
    other = tmp_path / "other.txt"
    other.write_text("--times=7\n")
    both = read(f"--flagfile={path}", f"--flagfile={other}", "--quiet")
    assert (both.times, both.mode) == (7, "slow")


def test_flagfile_that_is_wrong(tmp_path):
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("--tims=3\n")
    assert "'tims'" in refusal("--source=a", f"--flagfile={wrong}")
    wrong.write_text("times 3\n")
    assert "'times 3'" in refusal("--source=a", f"--flagfile={wrong}")


def test_unknown_flag_comes_with_a_suggestion():
    message = refusal("--source=a", "--tims=3")
    assert "'tims'" in message and "Did you mean: times" in message and "--help" in message
    assert "'zzzzzz'" in refusal("--source=a", "--zzzzzz")
    assert "'tim'" in refusal("--source=a", "--tim=3")  # no abbreviations
    assert "'notimes'" in refusal("--source=a", "--notimes")


@pytest.mark.parametrize(
    "argument",
    ("--times=two", "--times=1.5", "--rate=fast", "--overwrite=perhaps", "--mode=medium",
     "--limit=", "--times", "--noquiet=true"),
)  # fmt: skip
def test_value_of_the_wrong_type(argument):
    name = argument.lstrip("-").split("=")[0]
    assert f"--{name}" in refusal("--source=a", argument)


@pytest.mark.parametrize("arguments", ([], ["--source="], ["--times=3"]))
def test_required_flag(arguments):
    message = refusal(*arguments)
    assert "--source must be given" in message and "The file to copy." in message


@pytest.mark.parametrize(
    "arguments", (["b.txt"], ["--times=2", "b.txt"], ["b.txt", "--times=2"], ["--", "b.txt"])
)
def test_positional_argument(arguments):
    message = refusal("--source=a", *arguments)
    assert "b.txt" in message and "--name=value" in message


def status_and_output(program, capsys, arguments=("--source=a",)):
    """What `run_program` returns, with the lines on both streams."""
    status = run_program(program, CopyFlags, ["copy", *arguments])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err.splitlines()


def raising(error):
    """A program that fails."""

    def program(values):
        raise error

    return program


def test_status_of_a_run_is_0(capsys):
    seen = []
    assert status_and_output(seen.append, capsys) == (0, [], [])
    assert seen == [CopyFlags("a")]


def test_bad_input_is_one_line_with_status_1(capsys, tmp_path):
    program = raising(InputError("the file must\tbe UTF-8.   Received: bytes"))
    line = "error: the file must be UTF-8. Received: bytes"
    assert status_and_output(program, capsys) == (1, [], [line])
    for arguments in (
        [], ["--source=a", "--tims=3"], ["--source=a", "b"], ["--source=a", "--times"],
    ):  # fmt: skip
        status, out, err = status_and_output(program, capsys, arguments)
        assert (status, out, len(err)) == (1, [], 1) and err[0].startswith("error: ")

    missing = tmp_path / "missing.txt"
    status, out, err = status_and_output(lambda values: missing.read_text(), capsys)
    assert (status, out) == (1, []) and err == [f"error: No such file or directory: {missing}"]
    status, out, err = status_and_output(lambda values: tmp_path.read_text(), capsys)
    assert (status, out) == (1, []) and err == [f"error: Is a directory: {tmp_path}"]
    full = OSError(errno.ENOSPC, "No space left on device")
    status, out, err = status_and_output(raising(full), capsys)
    assert (status, out, len(err)) == (1, [], 1) and "No space left on device" in err[0]
    status, out, err = status_and_output(raising(KeyboardInterrupt()), capsys)
    assert (status, out, len(err)) == (1, [], 1)


@pytest.mark.parametrize(
    "error",
    (
        ValueError("a bug"),
        KeyError("a bug"),
        AssertionError("a bug"),
        RuntimeError("a bug"),
        OSError(errno.EBADF, "a bug"),
        OSError("a bug"),
    ),
    ids=repr,
)
def test_bug_is_not_swallowed(error, capsys):
    with pytest.raises(type(error)) as caught:
        run_program(raising(error), CopyFlags, ["copy", "--source=a"])
    assert caught.value is error
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("spelling", ("--help", "-h", "-help"))
def test_help_of_a_program(spelling, capsys):
    called = []
    assert run_program(called.append, CopyFlags, ["dir/copy.py", spelling]) == 0
    assert not called
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("copy.py: Copies a file.\n\nAs often as it is told to.\n")
    for line in (
        "--source=<str>  (required)",
        "--times=<int>  (default: 1)",
        "--limit=<int>  (not set)",
        "--rate=<float>  (default: BERT 0.5, ALBERT 2.0)",
        "--overwrite=<bool>  (default: BERT false, ALBERT true)",
        "--quiet=<bool>  (default: false)",
        "--mode=<fast|slow>  (default: fast)",
        "--flagfile=<path>",
        "--version",
    ):
        assert f"  {line}\n" in out
    assert out.count("  --") == 9


def test_version_of_a_program(capsys):
    called = []
    assert run_program(called.append, CopyFlags, ["dir/copy.py", "--version"]) == 0
    assert not called
    assert capsys.readouterr().out == f"copy.py {VERSION}\n"
