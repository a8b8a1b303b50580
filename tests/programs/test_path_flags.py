"""What a path flag says of a path that it cannot use is true, for every flag of every program."""

import contextlib
import dataclasses
import os
import signal

import keras
import pytest
from bad_input import Case, run_program, stop_before_work
from bad_input_files import make_world
from bad_input_programs import FLAG_CLASSES, PROGRAMS

from run_scripts.flags.help_groups import COMPATIBILITY, TPU, group_of
from run_scripts.flags.path_kinds import TAKEN
from run_scripts.flags.paths import is_path_flag

# A path of each kind -> what is said to be there, one of these.
KINDS = {
    "nothing": ("nothing there", "no file", "no such file", "No such file"),
    "folder": ("a folder", "Is a directory"),
    "file": ("a file", "Not a directory"),
    "pipe": ("a pipe",),
}
SAYS_KIND = {word: kind for kind, words in KINDS.items() for word in words}

# What is written anew, or is a list of a kind of its own, may be of these kinds.
OTHERS = {
    "output_file": ("nothing", "file"),
    "input_file": ("file", "folder"),
    "eval_input_file": ("file",),
    "train_file": ("file",),
    "predict_file": ("file",),
    "model": ("folder",),
}
MAY_BE = {flag: tuple(SAYS_KIND[said] for said in taken) for flag, taken in TAKEN.items()} | OTHERS

# Refused for other reasons, whatever is there, or read once: a pipe too.
OTHER_REASONS = {
    ("build_vocab --compare", "input_file"), ("build_vocab --compare", "output_dir"),
    ("run_squad", "export_dir"), ("extract_features", "input_file"),
}  # fmt: skip


def path_flags(program):
    for field in dataclasses.fields(program.flags_class):
        group = group_of(field.name, field.metadata["help"], field.metadata["required"])
        is_path = is_path_flag(field.name) and not field.metadata["choices"]
        if is_path and group not in (COMPATIBILITY, TPU):
            yield field.name


CASES = [
    (name, flag)
    for name, program in PROGRAMS.items()
    if " on " not in name and "," not in name  # the same program with other files
    for flag in path_flags(program)
    if (name, flag) not in OTHER_REASONS
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    stop_before_work(monkeypatch)
    yield
    keras.backend.clear_session()


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
@pytest.mark.parametrize(("name", "flag"), CASES)
def test_messages_are_true(world, tmp_path, name, flag, kind):
    path = make_path(tmp_path, kind)
    with at_most(60):
        status, lines, trace = run_program(world, name, Case("", {flag: path}))
    assert trace is None, trace
    assert status in (0, 1, "started")
    if status != 1:
        assert kind in MAY_BE[flag]
        return
    (line,) = lines
    found = line.replace(str(tmp_path), "")
    said = {kind_said for words, kind_said in SAYS_KIND.items() if words in found}
    if kind not in MAY_BE[flag]:
        assert kind in said and str(path) in line
    if "must be" in found.split("Received:")[0] and f"--{flag} " in found:  # of this path itself
        said -= {SAYS_KIND[word] for word in SAYS_KIND if word in found.split("Received:")[0]}
        assert said <= {kind}


LISTS = {
    "corpus",
    "held_out",
    "reviews",
    "eval_input_file",
    "config_file",
}  # `paths.expand_globs` checks them
WHERE_USED = {"ledger", "names"}


@pytest.mark.parametrize("flags_class", FLAG_CLASSES)
def test_what_a_path_flag_takes_is_known(flags_class):
    """A new flag gets a row of `TAKEN`, or its program looks at the path itself."""
    named = set(path_flags(PROGRAMS["build_vocab"]._replace(flags_class=flags_class)))
    assert named <= {*MAY_BE, *LISTS, *WHERE_USED}


@pytest.mark.parametrize("kind", ["nothing", "folder"])
def test_a_flag_file_that_is_none(world, tmp_path, kind):
    path = make_path(tmp_path, kind)
    status, lines, trace = run_program(world, "plan", Case("", {"flagfile": path}))
    assert (status, trace) == (1, None)
    (line,) = lines
    said = {"nothing": "which is neither in the working folder", "folder": "Is a directory"}
    assert "--flagfile must " in line and said[kind] in line and str(path) in line


def test_a_missing_model_is_not_said_to_lack_files(tmp_path):
    """From Python too, where no flags are checked."""
    import korean_bert

    for name, found in (("none", "nothing there"), ("file", "a file")):
        (tmp_path / "file").write_text("")
        with pytest.raises(ValueError, match=found) as raised:
            korean_bert.load_model(str(tmp_path / name))
        assert "must hold" not in str(raised.value)
