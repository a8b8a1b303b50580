"""What a path flag says of a path that it cannot use is true, for every flag of every program."""

import contextlib
import dataclasses
import os
import signal

import pytest

from tests.support.bad_inputs.bad_input import Case, run_program, stop_before_work
from tests.support.bad_inputs.bad_input_programs import PROGRAMS

pytestmark = pytest.mark.usefixtures("forget_models")

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
    "models": ("folder", "file"),
    "output_file": ("nothing", "file"),
    "input_file": ("file", "folder"),
    "eval_input_file": ("file",),
    "train_file": ("file",),
    "predict_file": ("file",),
    "model": ("folder",),
}


def may_be(field):
    """The kinds of what may lie at a flag's path."""
    return tuple(SAYS_KIND[kind] for kind in field.metadata["takes"]) or OTHERS[field.name]


# Refused for other reasons, whatever is there, or read once: a pipe too.
OTHER_REASONS = {
    ("build_vocab --compare", "input_file"), ("build_vocab --compare", "output_dir"),
    ("run_squad", "export_dir"), ("extract_features", "input_file"),
}  # fmt: skip


def cases():
    """A flag's first program with all kinds; of further programs the quick run has a kind each."""
    seen = set()
    for number, (name, program) in enumerate(PROGRAMS.items()):
        if " on " in name or "," in name:  # the same program with other files
            continue
        for field in dataclasses.fields(program.flags_class):
            if not field.metadata["is_path"] or (name, field.name) in OTHER_REASONS:
                continue
            for place, kind in enumerate(KINDS):
                quick = field.name not in seen or (number + place) % len(KINDS) == 0
                marks = [] if quick else [pytest.mark.slow]
                yield pytest.param(name, field, kind, id=f"{name}-{field.name}-{kind}", marks=marks)
            seen.add(field.name)


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    stop_before_work(monkeypatch, "tokenization.vocab_learning.learn.learn_vocabulary")


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


@pytest.mark.parametrize(("name", "field", "kind"), cases())
def test_messages_are_true(world, tmp_path, name, field, kind):
    path, flag = make_path(tmp_path, kind), field.name
    with at_most(60):
        status, lines, trace = run_program(world, name, Case("", {flag: path}))
    assert trace is None, trace
    assert status in (0, 1, "started")
    if status != 1:
        assert kind in may_be(field)
        return
    (line,) = lines
    found = line.replace(str(tmp_path), "")
    said = {kind_said for words, kind_said in SAYS_KIND.items() if words in found}
    if kind not in may_be(field):
        assert kind in said and str(path) in line
    if "must be" in found.split("Received:")[0] and f"--{flag} " in found:  # of this path itself
        said -= {SAYS_KIND[word] for word in SAYS_KIND if word in found.split("Received:")[0]}
        assert said <= {kind}


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
