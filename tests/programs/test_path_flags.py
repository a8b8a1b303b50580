"""What a path flag says of a path that it cannot use is true, for every flag of every program."""

import contextlib
import dataclasses
import os
import signal

import pytest

from run_scripts.flags.declaration import flag
from run_scripts.flags.parser import parse
from run_scripts.flags.parser import run_program as run
from run_scripts.flags.paths import FILE, FOLDER, NOTHING
from tests.support.bad_inputs.bad_input import Case, run_program, stop_before_work
from tests.support.bad_inputs.bad_input_programs import FLAG_CLASSES, PROGRAMS
from tests.support.refusals import refused

pytestmark = pytest.mark.usefixtures("forget_models")


@dataclasses.dataclass(frozen=True)
class CopyFlags:
    """Copies files."""

    source: str = flag(None, "What to copy.", takes=(FILE,))
    folder: str = flag(None, "Where to.", takes=(FOLDER, NOTHING))
    more: str = flag(None, "What else to copy.", takes=(FILE, FOLDER), is_list=True)
    title: str = flag(None, "What it is.")


def read(argument):
    """The values of a command line with one flag."""
    return parse(CopyFlags, ["copy", argument])


def test_addresses_of_storage_are_refused():
    for value in ("gs://bucket/x", "s3://b/x,local", "local,hdfs://b/x", "file:///tmp/x"):
        assert read(f"--title={value}").title == value
        with refused("--source must be a path in ", "Received: "):
            read(f"--source={value}")


def test_what_a_shell_removes_is_no_part_of_a_path(tmp_path, monkeypatch):
    """A line copied from a command into a flag file would name a folder with a quote in it."""
    monkeypatch.chdir(tmp_path)
    for value in ("'out/a b'", '"out/*.txt"', "out/a \\"):
        assert read(f"--title={value}").title == value
        with refused("--source must be a path without quotes", "Received: "):
            read(f"--source={value}")
    (tmp_path / "'").mkdir()
    (tmp_path / "'/a'").write_text("")
    assert read("--source='/a'").source == "'/a'"


def test_a_home_folder_is_no_folder_named_tilde(tmp_path, monkeypatch):
    """bash leaves ~ alone after "="; a folder of that name would one day be removed with rm -r."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for given, wanted in (
        ("~/x/t.out", f"{tmp_path}/x/t.out"),
        ("~", str(tmp_path)),
        ("a,~/b", f"a,{tmp_path}/b"),
        ("~/*.txt", f"{tmp_path}/*.txt"),
        ("a~/b", "a~/b"),
        ("./~/b", "./~/b"),
        ("~draft.txt", "~draft.txt"),
    ):
        assert read(f"--source={given}").source == wanted
        assert read(f"--title={given}").title == given
    (tmp_path / "job.flags").write_text("--help\n")
    assert read("--flagfile=~/job.flags") is None


# What may lie at a path -> how messages name it.
KINDS = {"nothing": NOTHING, "folder": FOLDER, "file": FILE, "pipe": "a pipe"}


def make_path(folder, kind):
    path = folder / f"a_{kind}"
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("{ is not what is asked for\n")
    elif kind == "pipe":
        os.mkfifo(path)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", dataclasses.fields(CopyFlags)[:3], ids=lambda field: field.name)
def test_kinds_that_a_flag_takes(tmp_path, capsys, field, kind):
    path = make_path(tmp_path, kind)
    status = run(lambda values: None, CopyFlags, ["copy", f"--{field.name}={path}"])
    line, takes = capsys.readouterr().err, field.metadata["takes"]
    assert status == (KINDS[kind] not in takes)
    assert not status or f"--{field.name} must be a f" in line
    assert not status or line.endswith(f"Received: {path}, {KINDS[kind]}\n")


# Flags that take lists of a kind of their own, or files to write -> what they take.
OTHERS = {
    "models": ("folder", "file"),
    "output_file": ("nothing", "file"),
    "input_file": ("file", "folder"),
    "eval_input_file": ("file",),
    "train_file": ("file",),
    "predict_file": ("file",),
}


def test_every_path_flag_says_what_it_takes():
    fields = {f for each in FLAG_CLASSES for f in dataclasses.fields(each) if f.metadata["is_path"]}
    assert {field.name for field in fields if not field.metadata["takes"]} == set(OTHERS)


def first_program(flag_name):
    """The first program with a flag that does not say what it takes."""
    for name, program in PROGRAMS.items():
        fields = {field.name: field.metadata for field in dataclasses.fields(program.flags_class)}
        if flag_name in fields and not fields[flag_name]["takes"]:
            return name
    raise LookupError(flag_name)


@contextlib.contextmanager
def at_most(seconds):
    """Raises TimeoutError if it takes longer: a pipe without a writer is waited for."""

    def end(*_):
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# The words of the other messages about what is there.
WORDS = {
    "nothing": ("nothing there", "no file", "no such file", "No such file"),
    "folder": ("a folder", "Is a directory"),
    "file": ("a file", "Not a directory"),
    "pipe": ("a pipe",),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flag_name", OTHERS)
def test_messages_are_true(world, tmp_path, monkeypatch, flag_name, kind):
    stop_before_work(monkeypatch, "tokenization.vocab_learning.learn.learn_vocabulary")
    name, path = first_program(flag_name), make_path(tmp_path, kind)
    with at_most(60):
        status, lines, trace = run_program(world, name, Case("", {flag_name: path}))
    assert trace is None and status in (0, 1, "started"), trace
    if status != 1:
        assert kind in OTHERS[flag_name]
    elif kind not in OTHERS[flag_name]:
        (line,) = lines
        assert str(path) in line
        assert any(words in line.replace(str(tmp_path), "") for words in WORDS[kind])


def test_a_missing_model_is_not_said_to_lack_files(tmp_path):
    """From Python too, where no flags are checked."""
    import korean_bert

    for name, found in (("none", "nothing there"), ("file", "a file")):
        (tmp_path / "file").write_text("")
        with pytest.raises(ValueError, match=found) as raised:
            korean_bert.load_model(str(tmp_path / name))
        assert "must hold" not in str(raised.value)
