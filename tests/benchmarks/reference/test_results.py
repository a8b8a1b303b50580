"""The tables of measured runs, and the list of their commands."""

from benchmarks.reference.ledger import LEDGER, Machine, append_run, read_runs
from benchmarks.reference.results import commands, question_table, show_tables, task_table
from tests.support.benchmark_programs import output_of
from tests.support.measured_runs import ONE, make_run


def runs_of(*runs):
    return {run.name: run for run in runs}


def test_scores_of_seeds_and_of_beginnings():
    runs = runs_of(
        make_run("r/model/nsmc/seed1", {"eval_accuracy": 0.875, "eval_loss": 0.5}),
        make_run("r/model/nsmc/seed2", {"eval_accuracy": 0.9, "eval_loss": 0.25}),
        make_run("r/random_weights/nsmc/seed1", {"eval_accuracy": None}),
        make_run("r/model/korquad/seed1", {"eval_f1": 61.5}, command="python run_squad.py"),
        make_run("other/model/nsmc/seed1", {"eval_accuracy": 0.5}),
    )
    headings, rows = task_table(runs, "r")
    assert headings == ["task", "score", "model", "random_weights"]
    assert rows == [
        ["nsmc", "eval_accuracy", "88.75 ± 1.77", "–"],
        ["korquad", "eval_f1", "61.50", "–"],
    ]


def test_questions_leave_out_what_was_not_run():
    cell = {"task": "nsmc", "score": "eval_accuracy"}
    question = {
        "cells": [
            {**cell, "variant": "sop", "runs": ["a/seed1", "a/seed2"]},
            {**cell, "variant": "nsp", "runs": ["b/seed1"]},
        ]
    }
    runs = runs_of(make_run("a/seed1", {"eval_accuracy": 0.75}))
    assert question_table(runs, question) == (["variant", "nsmc"], [["sop", "75.00"]])


def test_costs_of_several_machines(capsys):
    other = Machine("CPU two", 1, None)
    show_tables(runs_of(make_run("a/seed1", {}, ONE), make_run("a/seed2", {}, other)))
    out = capsys.readouterr().out
    assert "- A: CPU one, 2 cores, 8 GiB\n- B: CPU two, 1 core\n" in out
    assert "| a | 2 min | 4 min | 1.25 GiB | AB | 1, 1 | 2026-01-31 | 0123456789ab |" in out


def test_commands_have_the_present_names():
    old = "python benchmarks/choices/order.py --model_dir=model"
    runs = runs_of(*(make_run(f"order/seed{i}", {}, command=old) for i in (1, 2)))
    assert list(commands(runs)) == [
        "# order (seeds 1, 2)\npython -m benchmarks.quality.order --model_dir=model"
    ]
    gone = "python benchmarks/choices/cut_tasks.py --tasks_dir=data"
    runs = runs_of(make_run("tasks", {}, command=gone))
    assert list(commands(runs)) == [f"# tasks (with the code of 0123456789ab)\n{gone}"]


def test_the_projects_ledger(tmp_path):
    out = output_of("reference.results")
    assert "| vocabulary" not in out and "| kiwi-16000 |" in out
    assert f"| {next(iter(read_runs(LEDGER)))} |" in out
    append_run(tmp_path / "runs.jsonl", make_run("mine/model/nsmc/seed1", {"eval_accuracy": 1.0}))
    out = output_of("reference.results", f"--ledger={tmp_path}/runs.jsonl", "--commands")
    assert out == (
        "# mine/model/nsmc\npython run_classifier.py --output_dir=output/mine/model/nsmc/seed1\n"
    )
