"""Tests of the ledger, the file of measured runs."""

import dataclasses
import json
import os

import pytest

from benchmarks.reference.ledger import (
    Machine,
    Run,
    append_run,
    find_run,
    keep_to_one_ledger,
    read_runs,
)
from bert_common.errors import InputError

RUN = Run(
    name="nsmc/reference/seed1",
    command="python run_classifier.py --task_name=nsmc",
    machine=Machine("Fast CPU", 2, 7.6, ("GPU", "GPU")),
    seed=1,
    seconds=12.5,
    cpu_seconds=20.25,
    memory_gib=1.5,
    scores={"eval_accuracy": 0.875, "eval_spearman": None},
    date="2026-01-31",
    code="0123456789ab+",
)


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "new" / "runs.jsonl"
    machine = dataclasses.replace(RUN.machine, bfloat16=("avx512_bf16", "amx_bf16"))
    other = dataclasses.replace(RUN, name="한국어/seed2", code=None, seed=None, machine=machine)
    unknown = dataclasses.replace(RUN, name="lent", cpu_seconds=None, memory_gib=None)
    runs = [RUN, other, unknown]
    for run in runs:
        append_run(path, run)
    assert list(read_runs(path).values()) == runs
    assert os.listdir(path.parent) == ["runs.jsonl"]
    assert "한국어" in path.read_text(encoding="utf-8")
    assert read_runs(tmp_path / "missing") == {}
    with pytest.raises(InputError, match="each run once. Received: nsmc/reference/seed1 twice"):
        append_run(path, RUN)


def changed(**values):
    line = json.loads(json.dumps(dataclasses.asdict(RUN)))
    line.update(values)
    return json.dumps({key: value for key, value in line.items() if value != "remove"})


BAD_LINES = {
    "an unknown key": (changed(color="red"), "exactly the keys .* Received: .*'color'"),
    "an unknown key of the machine": (changed(machine={"cpu": 1}), "line 1, machine must have"),
    "half a line": (changed()[:40], "line 1, must hold JSON"),
    "a score in words": (changed(scores={"a": "good"}), "scores .* must be numbers.*a='good'"),
    "negative seconds": (changed(seconds=-1), "at least 0. Received"),
    "a name twice": (f"{changed()}\n{changed()}", "line 2, must name each run once"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_damaged_ledger_is_refused(case, tmp_path):
    text, message = BAD_LINES[case]
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_runs(path)


def test_a_name_stands_for_one_command(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_run(path, RUN)
    assert find_run(path, RUN.name, RUN.command) == RUN
    assert find_run(path, "another", RUN.command) is None
    with pytest.raises(InputError, match="stand for one command.*task_name=nsmc. Received: python"):
        find_run(path, RUN.name, "python other.py")


def test_a_folder_of_work_is_of_one_ledger(tmp_path):
    """Otherwise what is finished there would be a run of some seconds in the other one."""
    project, moved = tmp_path / "project", tmp_path / "moved"
    work = project / "work"
    work.mkdir(parents=True)
    (work / "ledger.txt").touch()  # as an interrupted copy may leave it
    keep_to_one_ledger(str(work), str(project / "runs.jsonl"))
    keep_to_one_ledger(f"{work}/", str(work / ".." / "runs.jsonl"))
    with pytest.raises(InputError, match="other.jsonl for .*, whose runs are in .*/runs.jsonl$"):
        keep_to_one_ledger(str(work), str(project / "other.jsonl"))
    project.rename(moved)
    keep_to_one_ledger(str(moved / "work"), str(moved / "runs.jsonl"))
