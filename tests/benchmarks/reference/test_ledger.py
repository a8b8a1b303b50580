"""Tests of the ledger, the file of measured runs."""

import dataclasses
import os

import pytest

from benchmarks.reference.ledger import Machine, append_run, find_run, read_runs
from tests.support.measured_runs import make_run

MACHINE = Machine("Fast CPU", 2, 7.6, ("GPU", "GPU"))
SCORES = {"eval_accuracy": 0.875, "eval_spearman": None}
RUN = make_run("nsmc/reference/seed1", SCORES, MACHINE, command="python run_classifier.py --a=b")


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
    with pytest.raises(AssertionError, match="a run of the name nsmc/reference/seed1"):
        append_run(path, RUN)


def test_a_name_stands_once_for_one_command(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_run(path, RUN)
    assert find_run(path, RUN.name, RUN.command) == RUN
    assert find_run(path, "another", RUN.command) is None
    with pytest.raises(AssertionError, match="is of: python run_classifier.py --a=b"):
        find_run(path, RUN.name, "python other.py")
    path.write_bytes(2 * path.read_bytes())
    with pytest.raises(AssertionError, match="two runs of the name nsmc/reference/seed1"):
        read_runs(path)
