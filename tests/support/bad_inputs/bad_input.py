"""Bad values and bad files for every program, drawn by a seed; what must follow.

Every case is a good command line on good files with one thing changed. A run that the change does
no harm to is stopped where its work would begin.
"""

import contextlib
import dataclasses
import importlib
import io
import random
import shutil
import traceback
import warnings
from typing import NamedTuple

from run_scripts.flags.declaration import value_type
from tests.support.bad_inputs.bad_input_files import DAMAGE, TAKEN
from tests.support.bad_inputs.bad_input_programs import PROGRAMS


class Started(BaseException):
    """Raised where a program's work would begin."""


# Where the work of the programs begins.
WORK = (
    "run_scripts.create_data.run_passes", "run_scripts.session.train",
    "finetuning.prediction.Predictor.__call__", "bert_tf.checkpoint.write_arrays",
    "finetuning.features.extraction.extract", "bert_tf.summaries.mask_predictions.best_guesses",
    "explorer.server.serve",
)  # fmt: skip


def stop_before_work(monkeypatch, *more):
    """Has every program raise `Started` where its work would begin; also in these functions."""

    def start(*_, **__):
        raise Started

    # Imported before its functions are replaced.
    importlib.import_module("korean_bert.model")
    for place in (*WORK, *more):
        monkeypatch.setattr(place, start)


class Case(NamedTuple):
    """A bad command line."""

    what: str  # for people
    flags: dict  # changes to the program's good flags; None: left out
    more: tuple = ()  # arguments after them
    path: str | None = None  # of the file that is changed, below the world's folder
    content: object = None  # its bytes, or a function that is called with its path
    must_fail: bool = True  # else the run may also begin to work
    about: tuple = ()  # the error must contain one of these


# === Drawing ===


def bad_value(draw, field):
    """A value that a flag does not take, whatever its program; None for a text."""
    kind, bounds = value_type(field), field.metadata["bounds"]
    if field.metadata["choices"]:
        return draw.choice(("nonsense", "", " ", "가", "none,none", "9" * 5000))
    if kind is bool:
        return draw.choice(("maybe", "2", "-1", "가", "truefalse"))
    if kind in (int, float):
        outside = [bounds[name] - 1 for name in ("least", "above") if name in bounds]
        outside += [bounds[name] + 1 for name in ("most", "below") if name in bounds]
        return draw.choice((*outside, "x", "1,5", "0x1g", "가", "nan", "9" * 5000, "", "1 2", "--"))
    return None


def bad_text(draw, program, field):
    """A text that a flag does not take."""
    name = field.name
    if name.endswith(("_file", "_dir", "_checkpoint")) and name in program.flags:
        if name.startswith("output"):
            return draw.choice(("{}/text.txt/x", "gs://bucket/x", "/proc/none/x"))
        texts = ("{}/none", "{}/text.txt/x", "s3://bucket/x", "{}/" + "x" * 300, "x" * 5000)
        return draw.choice((*texts, "[", "\udcff"))
    return "\udcff\udcfe"


def draw_case(world, name, seed):
    """The case of a program that belongs to a seed: a flag's value, or a damaged file."""
    draw, program = random.Random(f"{name} {seed}"), PROGRAMS[name]
    if draw.random() < 0.4:
        return draw_flag(draw, program)
    path = draw.choice(list(program.files))
    damage = draw.choice(DAMAGE[program.files[path]])
    what, content, must_fail = draw.choice(list(damage(draw, (world / path).read_bytes())))
    more = (f"--flagfile={world / path}",) if path.endswith(".flags") else ()
    return Case(f"{path}: {what}", {}, more, path, content, must_fail)


def draw_flag(draw, program):
    fields = dataclasses.fields(program.flags_class)
    if draw.random() < 0.5:
        fields = [f for f in fields if f.name in program.flags]
    field = draw.choice(fields)
    how = draw.random()
    if how < 0.04:
        return Case("an unknown flag", {}, (f"--{field.name}x=1",), about=(field.name,))
    if how < 0.07:
        return Case("no flag", {}, (draw.choice(("x", "--", "-", "---x", "가")),), must_fail=False)
    if field.metadata["required"] and how < 0.2:
        return Case(f"no {field.name}", {field.name: None}, about=(field.name,))
    value = bad_value(draw, field)
    if value is None:
        value = bad_text(draw, program, field)
    return Case(f"--{field.name}={str(value)[:40]!r}", {field.name: value})


# === Running ===


@contextlib.contextmanager
def file_with(world, case):
    """The world with the case's file in it."""
    if case.path is None:
        yield
        return
    path = world / case.path
    kept = path.read_bytes()
    path.unlink()
    try:
        if callable(case.content):
            case.content(path)
        else:
            path.write_bytes(case.content)
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        path.write_bytes(kept)


def run_case(world, name, seed):
    """Runs the case that belongs to a seed.

    Returns:
        Whether it was refused, and what is wrong: None, or a text with the case in it.
    """
    case = draw_case(world, name, seed)
    place = name, case.path, case.what.partition(": ")[2]
    status, lines, wrong = run_program(world, name, case)
    if wrong is None and status == 1:
        wrong = what_is_wrong(case, lines)
    elif wrong is None and case.must_fail and place not in TAKEN:
        wrong = f"it was not refused: status {status} {lines}"
    if wrong:
        wrong = f"{name}, seed {seed}, {case.what}: {wrong}"
    return status == 1, wrong


def what_is_wrong(case, lines):
    """What is wrong with the lines of a run that was refused, or None."""
    if len(lines) != 1 or not lines[0].startswith("error: ") or len(lines[0]) > 1600:
        return f"not one line: {lines}"[:3000]
    if case.about and not any(each in lines[0] for each in case.about):
        return f"does not say what it is about: {lines[0]}"
    return None


def run_program(world, name, case):
    """Runs a program on a case.

    Returns:
        The exit status, or "started"; the lines on standard error that are neither progress nor
        warnings; a traceback or None.
    """
    program, argv = PROGRAMS[name], [name.split()[0]]
    for flag, value in {**program.flags, **case.flags}.items():
        if value is not None:
            argv.append(f"--{flag}={value}".replace("{}", str(world)))
    argv += case.more
    out, err = io.StringIO(), io.StringIO()
    status = trace = None
    with (
        file_with(world, case),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always")
        try:
            status = program.main(argv)
        except Started:
            status = "started"
        except BaseException:
            trace = traceback.format_exc()
    shutil.rmtree(world / "out", ignore_errors=True)
    lines = [
        line
        for line in err.getvalue().replace("\r", "\n").split("\n")
        if line.strip() and not line.startswith(("warning: ", "left out, ")) and "%" not in line
    ]
    if "Traceback" in out.getvalue():
        trace = out.getvalue()
    return status, lines, trace
