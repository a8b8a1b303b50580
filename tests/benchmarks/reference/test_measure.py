"""Tests of what a measured program costs: its starts, its workers, its signals."""

import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.reference import measure as measure_module
from benchmarks.reference.ledger import this_machine
from benchmarks.reference.measure import measure, read_scores

# A program that works for 0.3 seconds of the processor, and can kill itself.
PROGRAM = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "starts").open("a").write("x")
held = bytearray(200 * 2**20)
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
if (folder / "starts").read_text() in sys.argv[2].split(","):
    os.kill(os.getpid(), signal.SIGKILL)
(folder / "eval_results.txt").write_text("accuracy = 0.75\\nspearman = nan\\n")
"""


def run_program(tmp_path, name="a/b", dies_at="-", **options):
    """Measures `PROGRAM`; `dies_at` lists the starts, "x", "xx", …, at which it kills itself."""
    command = ["python", "-c", PROGRAM, str(tmp_path), dies_at]
    scores = functools.partial(read_scores, str(tmp_path))
    places = {"ledger": tmp_path / "docs" / "runs.jsonl", "work_dir": str(tmp_path / "work")}
    return measure(name, command, scores, **places, **options)


def test_a_run_is_measured_once(tmp_path):
    run = run_program(tmp_path, seed=3)
    assert run.scores == {"accuracy": 0.75, "spearman": None}
    assert (run.name, run.seed, run.machine) == ("a/b", 3, this_machine())
    assert run.command.startswith("python -c ")
    assert run.seconds >= 0.3 and run.cpu_seconds >= 0.3
    assert 0.19 < run.memory_gib < 0.4  # the 200 MiB, and Python
    assert run_program(tmp_path, seed=3) == run
    assert (tmp_path / "starts").read_text() == "x"
    assert os.listdir(tmp_path / "work") == []
    with pytest.raises(AssertionError, match="a/b of .* is of: python"):
        run_program(tmp_path, dies_at="xxx")


@pytest.mark.slow
def test_starts_of_a_killed_run_add_up(tmp_path):
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError, match="died with .*SIGKILL"):
            run_program(tmp_path, dies_at="x,xx")
        assert not (tmp_path / "docs").exists()
    run = run_program(tmp_path, dies_at="x,xx")
    assert (tmp_path / "starts").read_text() == "xxx"
    assert run.seconds >= 0.9 and run.cpu_seconds >= 0.9


def test_failed_program_leaves_no_run(tmp_path):
    options = {"ledger": tmp_path / "runs.jsonl", "work_dir": str(tmp_path)}
    with pytest.raises(subprocess.CalledProcessError, match="exit status 5"):
        measure("a", ["python", "-c", "raise SystemExit(5)"], dict, **options)
    with pytest.raises(FileNotFoundError):
        measure("b", ["nothing-of-this-name"], dict, **options)
    assert not (tmp_path / "runs.jsonl").exists()


STOPPED = """
import sys
from benchmarks.reference import measure
child = '''
import os, signal, sys, time
def save(*_):
    print("saved", file=sys.stderr)
    sys.exit(1)
signal.signal(signal.SIGINT, save)
open(sys.argv[1] + "/pid", "w").write("ready")
time.sleep(60)
'''
folder = sys.argv[1]
measure.measure("a", ["python", "-c", child, folder], dict, ledger=folder + "/r", work_dir=folder)
"""


def test_ctrl_c_lets_the_program_save(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tmp_path)], stderr=subprocess.PIPE, text=True,
        process_group=0,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (tmp_path / "pid").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=60)
    assert "saved" in errors and "KeyboardInterrupt: a was stopped" in errors
    assert not (tmp_path / "r").exists()
    assert json.loads((tmp_path / "a.cost.json").read_text())["seconds"] > 0


def test_an_unfinished_run_is_of_one_command(tmp_path):
    """Another one would go on from its checkpoints, and count its own time alone."""
    path = tmp_path / "a.cost.json"
    cost = measure_module.Cost("one", "1", 5.0, 6.0, 7.0)
    path.write_text(json.dumps(dataclasses.asdict(cost)))
    assert measure_module._read_cost(str(path), "one", "1") == cost
    with pytest.raises(AssertionError, match="a.cost.json: one"):
        measure_module._read_cost(str(path), "other", "2")
    missing = str(tmp_path / "b.cost.json")
    assert measure_module._read_cost(missing, "other", "2") == measure_module.Cost("other", "2")
