"""The program that checks a machine's devices: all checks pass here, and failures are reported."""

import json
import re
import sys

import numpy as np
import pytest
import tensorflow as tf

from run_scripts.tools.check_devices import __main__ as program
from run_scripts.tools.check_devices import processes, steps, tasks
from run_scripts.tools.check_devices.processes import run_group, worker_environments
from run_scripts.tools.check_devices.steps import ON_ONE_DEVICE, ON_SEVERAL, check_step
from run_scripts.tools.check_devices.worker import first_line
from tests.support.paths import PYTHONPATH, printed_by

MODULE = "run_scripts.tools.check_devices"

# On a busy machine; an idle one needs a sixth of it.
DEADLINE = 1200


def task(strategy="one_device", device="CPU:0", xla=False, precision="float32"):
    places = {"strategy": strategy, "device": device}
    return {"kind": tasks.CHECK, **places, "xla": xla, "precision": precision}


@pytest.mark.slow
def test_this_machine_is_all_right(tmp_path):
    report = tmp_path / "report.json"
    out = printed_by("-m", MODULE, f"--report={report}", timeout=DEADLINE)
    rows = [re.split(r" {2,}", line) for line in out.splitlines()]
    steps = [row for row in rows if row[1:2] in (["on"], ["off"])]
    checks = {tuple(row[:3]): row[3:] for row in steps if len(row) == 5}
    assert sorted(checks) == sorted(
        (where, xla, precision)
        for where in ("CPU:0", "mirrored", "multi_worker")
        for xla in ("on", "off")
        for precision in ("float32", "bfloat16")
    )
    for (_, _, precision), (difference, result) in checks.items():
        assert result == "ok"
        # bfloat16 has 8 bits: numbers as near as float32's were not computed in it.
        assert (float(difference) > 1e-4) == (precision == "bfloat16")
    options = {(row[0], row[3]): row[5] for row in steps if len(row) == 6}
    assert options == {
        **{("CPU:0", name): "ok" for name in ON_ONE_DEVICE},
        **{("mirrored", name): "ok" for name in ON_SEVERAL},
        ("multi_worker", "three steps"): "ok",
    }
    count = len(checks) + len(options)
    assert out.endswith(f"\nAll {count} checks passed.\n")
    written = json.loads(report.read_text(encoding="utf-8"))
    assert len(written["checks"]["results"]) == count
    assert written["machine"]["tensorflow"] == tf.__version__


def test_what_is_compared(monkeypatch):
    right = {"loss": 2.0, "gradient norm": 3.0, "weights": np.ones((1, 4))}
    monkeypatch.setattr(steps, "reference", lambda option, rows: right)
    apart = {**right, "weights": np.stack([np.ones(4), np.array([1, 1, 1, 1.2])])}
    for numbers, result in (
        (right, "ok"),
        (apart, "wrong: weights by 1.0e-01"),
        ({**right, "loss": 1.0}, "wrong: loss by 5.0e-01"),
        ({**right, "gradient norm": np.nan}, "wrong: gradient norm by nan"),
        ({**right, "different_replicas": 2}, "wrong: the replicas' weights are not equal"),
    ):
        monkeypatch.setattr(steps, "tiny_step", lambda task, numbers=numbers: numbers)
        assert check_step(task())["result"] == result


# A program whose tasks compute nothing; TensorFlow, which takes seconds to import, is none.
PRETENDED = """
import os, sys, time
from pathlib import Path
from unittest import mock
sys.modules["tensorflow"] = mock.MagicMock()
from run_scripts.tools.check_devices import worker

def pretend(task):
    if task["precision"] == "an exception":
        raise ValueError("the first line\\nthe second")
    if task["precision"] == "a crash":
        print("F0000 00:00:00 file.cc:1] Check failed: no ptxas", file=sys.stderr, flush=True)
        os.abort()
    if task["precision"] == "a worker's exception":
        if '"index": 1' in os.environ["TF_CONFIG"]:
            raise ValueError("only here")
        time.sleep(600)
    if task["precision"] == "a hang":
        time.sleep(600)
    second = '"index": 1' in os.environ.get("TF_CONFIG", "")
    if task["precision"] == "a number" or task["precision"] == "a worker's number" and second:
        return {"result": "wrong: loss by 3.0e-01", "difference": 0.3}
    return {"result": "ok", "difference": 1e-7}

worker.function_of = lambda task: pretend
sys.exit(worker.work(Path(sys.argv[1])))
"""


# What they do; the last three in two workers.
NAMES = (
    *("float32", "a number", "an exception", "a crash", "bfloat16"),
    *("a worker's exception", "a worker's number", "float16"),
)


@pytest.fixture
def pretended(monkeypatch):
    """Tasks are done by `PRETENDED`."""
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.setattr(processes, "COMMAND", (sys.executable, "-c", PRETENDED))


@pytest.mark.usefixtures("pretended")
def test_what_is_not_right_becomes_a_row_and_the_exit_status(monkeypatch, capsys):
    listed = [task(precision=name) for name in NAMES[:5]]
    listed += [task("multi_worker", None, precision=name) for name in NAMES[5:]]
    monkeypatch.setattr(tasks, "check_tasks", lambda gpus: listed)
    monkeypatch.setattr(tasks, "option_tasks", lambda gpus: [])
    assert program.main(["check_devices"]) == 1
    out, err = capsys.readouterr()
    rows = [line.split(maxsplit=2) for line in out.splitlines() if " off " in line]
    told = {name: next(row[2] for row in rows if row[2].startswith(name)) for name in NAMES}
    results = {name: re.split(r" {2,}", line)[-1] for name, line in told.items()}
    crash = results.pop("a crash")
    assert results == {
        "float32": "ok",
        "a number": "wrong: loss by 3.0e-01",
        "an exception": "failed: ValueError: the first line",
        "bfloat16": "ok",
        "a worker's exception": "failed: ValueError: only here",
        "a worker's number": "wrong: loss by 3.0e-01",
        "float16": "ok",
    }
    assert re.fullmatch("failed: the process ended with SIGABRT: F0000 .* no ptxas", crash)
    assert err.endswith("error: all checks must pass. Received: 5 of 8 failed\n")


@pytest.mark.usefixtures("pretended")
def test_a_process_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(processes, "SILENCE_SECONDS", 0.2)
    answers = run_group([task(precision="a hang")], lambda: [{}])
    answers = [answer for answer in answers if answer is not None]
    assert answers == [{"result": "failed: no answer for 0.2 s"}]


ERRORS = {
    "one line": (ValueError("a\nb"), "ValueError: a"),
    "no text": (RuntimeError(), "RuntimeError: "),
    "tracing": (
        ValueError('in user code:\n\n    File "f.py", line 9, in f\n        f(x)\n\n'
                   "    TypeError: no such shape\n"),
        "ValueError: TypeError: no such shape",
    ),
    "a stack": (
        tf.errors.UnknownError(
            None, None, 'Graph execution error:\n\nDetected at node A defined at\n  File "f.py", '
            "line 1\n\nno kernel\n\t [[A]]"
        ),
        "UnknownError: no kernel",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_first_line(name):
    error, line = ERRORS[name]
    assert first_line(error) == line


def test_first_line_of_what_xla_cannot_compile():
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        tf.function(tf.strings.as_string, jit_compile=True)(tf.ones([3]))
    line = first_line(raised.value)
    assert line.startswith("InvalidArgumentError: Detected unsupported operations")
    assert "AsString" in line and "\n" not in line


def test_tasks_of_machines_with_gpus():
    listed = tasks.check_tasks(2)
    places = {(t["strategy"], t["device"]) for t in listed}
    one = {("one_device", "GPU:0"), ("one_device", "GPU:1")}
    assert places == one | {("mirrored", None), ("multi_worker", None)}
    assert {t["precision"] for t in listed} == {"float32", "bfloat16", "float16"}
    assert len(listed) == len(places) * 3 * 2


def test_ways_of_training_are_checked_on_one_and_on_several_devices():
    for gpus, several in ((0, "mirrored"), (1, "split"), (2, "mirrored"), (8, "mirrored")):
        listed = tasks.option_tasks(gpus)
        places = {}
        for t in listed:
            places.setdefault(t["strategy"], set()).add(t["option"])
        assert places == {
            "one_device": set(ON_ONE_DEVICE),
            several: set(ON_SEVERAL),
            "multi_worker": {"three steps"},
        }
        # Every replica has as many rows as the others, in each of two microbatches.
        assert all(t["rows"] % (2 * max(gpus, 1)) == 0 and t["rows"] % 4 == 0 for t in listed)


def test_logical_gpus_have_a_process_of_their_own():
    groups = tasks.check_groups([*tasks.check_tasks(1), *tasks.option_tasks(1)], 1)
    environments = {group[0]["strategy"]: make() for group, make in groups}
    assert set(environments) == {"one_device", "multi_worker", "split"}
    assert environments["one_device"] == [{}]
    assert environments["split"] == [{"CHECK_DEVICES_SPLIT": "1"}]
    assert len(environments["multi_worker"]) == 2


def test_workers_share_no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,6")
    shown = [[e["CUDA_VISIBLE_DEVICES"] for e in worker_environments(n)] for n in (0, 1, 3)]
    assert shown == [["-1", "-1"], ["-1", "-1"], ["3", "5"]]
    a, b = (e["TF_CONFIG"] for e in worker_environments(0))
    assert a.replace('"index": 0', '"index": 1') == b
