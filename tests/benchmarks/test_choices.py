"""The benchmark of choices: its plan, what variants share, its tables."""

import sys
from pathlib import Path

import pytest
from measured_runs import make_run
from paths import ROOT

# After the project's packages: benchmarks/tokenization.py must not hide one of them.
sys.path.append(str(ROOT / "benchmarks"))

from choices import run
from choices.estimates import Estimates, first_estimate
from choices.pieces import equal_passes, equal_time
from choices.plan import Inputs, Plan
from choices.questions import QUESTIONS, Question, Variant
from choices.report import make_questions
from choices.run import select

from bert_common.errors import InputError
from run_scripts.reference.ledger import Machine, Run, append_run, read_runs
from run_scripts.reference.pages.english import ENGLISH
from run_scripts.reference.pages.tables import question_samples, question_table

OTHER_MACHINE = Machine("CPU two", 2, 7.6)

TWO = {
    "one": Question(
        "One", "하나", {"a": Variant(), "b": Variant(vocabulary="usual-8000")}, ("3i4k",)
    ),
    "two": Question("Two", "둘", {"c": Variant(), "d": Variant(records={"ngram": 3})}, ("3i4k",)),
}  # fmt: skip


def inputs(work_dir="work", **changes):
    values = dict.fromkeys(("wiki", "held_out", "reviews", "tasks_dir"), "x")
    values |= {"work_dir": str(work_dir), "passes": 2.0, "updates": 100, "seeds": (1, 2)}
    return Inputs(**{**values, "scale": 1.0, "precision": "bfloat16", **changes})


def names(pieces):
    return [piece.name for piece in pieces]


def test_what_variants_share_is_computed_once():
    plan = Plan(TWO, inputs(), linear=False)
    assert names(plan.pieces.values()) == [
        "choices/text",
        "choices/tasks",
        "choices/one/a/vocabulary",
        "choices/one/a/records",
        "choices/one/a/held_out_records",
        "choices/one/a/pretraining",
        "choices/one/a/3i4k/seed1",
        "choices/one/a/3i4k/seed2",
        "choices/one/b/vocabulary",
        "choices/one/b/records",
        "choices/one/b/held_out_records",
        "choices/one/b/pretraining",
        "choices/one/b/3i4k/seed1",
        "choices/one/b/3i4k/seed2",
        "choices/two/d/records",
        "choices/two/d/held_out_records",
        "choices/two/d/pretraining",
        "choices/two/d/3i4k/seed1",
        "choices/two/d/3i4k/seed2",
    ]


def test_pieces_are_named_alike_whatever_is_selected():
    plan = Plan(TWO, inputs(), linear=False)
    chosen = names(select(plan, ["two"], ["c"], ["3i4k"]))
    assert chosen == names(plan.pieces.values())[:8]
    assert names(select(plan, None, ["d"], ["pretraining"])) == [
        "choices/text",
        "choices/one/a/vocabulary",
        "choices/two/d/records",
        "choices/two/d/held_out_records",
        "choices/two/d/pretraining",
    ]
    with pytest.raises(InputError, match=r"--variants must be of a, b, c, d\. Received: e"):
        select(plan, None, ["e"])
    with pytest.raises(InputError, match="something in common"):
        select(plan, ["one"], ["c"])


def test_another_number_of_passes_is_another_pretraining():
    some, others = (Plan(TWO, inputs(passes=p), linear=False).pieces for p in (2.0, 3.0))
    shared = set(some) & set(others)
    assert {some[folder].name for folder in shared} == {
        name for name in names(some.values()) if "pretraining" not in name and "3i4k" not in name
    }


def test_precision_is_the_machines_matter():
    """Whatever it is, a piece is the same, and an evaluation has none."""
    bfloat16, float32 = [
        list(Plan(TWO, inputs(precision=precision), linear=False).pieces.values())
        for precision in ("bfloat16", "float32")
    ]
    assert [piece.folder for piece in bfloat16] == [piece.folder for piece in float32]
    for one, other in zip(bfloat16, float32, strict=True):
        assert one.flags | {"precision": 0} == other.flags | {"precision": 0}
        trains = "pretraining" in one.name or "seed" in one.name
        assert one.flags.get("precision") == ("bfloat16" if trains else None)
        assert other.flags.get("precision") == ("float32" if trains else None)


def test_equal_passes_and_equal_time():
    scores = {
        "base": {"records": 1000},
        "dense": {"records": 500},
        "static": {"records": 5000},
        "slow": {"seconds_per_update": 0.3},
        "fast": {"seconds_per_update": 0.1},
    }
    steps = {"num_train_steps": 100, "num_warmup_steps": 10}
    assert equal_passes("base", 1, 4, 100, scores) == {"train_batch_size": 40, **steps}
    assert equal_passes("dense", 1, 4, 100, scores) == {"train_batch_size": 20, **steps}
    assert equal_passes("static", 5, 4, 100, scores) == {"train_batch_size": 40, **steps}
    assert equal_time("base", "slow", "fast", 4, 100, scores) == {
        "train_batch_size": 40,
        "num_train_steps": 300,
        "num_warmup_steps": 30,
    }


def test_equal_time_needs_one_machine_and_precision(tmp_path, monkeypatch):
    """Trials that another machine or precision has timed say nothing of this one's."""
    monkeypatch.setattr(run, "measure", lambda name, command, read, **options: command)
    google = {"recipe": QUESTIONS["recipe"]}
    plan = Plan(google, inputs(tmp_path), linear=False)
    (piece,) = (p for p in plan.pieces.values() if p.name.endswith("google/pretraining"))
    scores = {"records": 1000, "seconds_per_update": 0.5}
    command = "python run_pretraining.py --precision=bfloat16"
    runs = {need.name: make_run(need.name, scores, command=command) for need in piece.needs}
    for need in piece.needs:
        Path(need.folder).mkdir(parents=True)
    run.run_piece(piece, runs, tmp_path / "runs.jsonl", str(tmp_path))
    trial = next(need.name for need in piece.needs if need.kind == "trial")
    runs[trial] = make_run(trial, scores, OTHER_MACHINE, command=command)
    with pytest.raises(InputError, match="timed on one machine"):
        run.run_piece(piece, runs, tmp_path / "runs.jsonl", str(tmp_path))
    runs[trial] = make_run(trial, scores, command=command.replace("bfloat16", "float32"))
    with pytest.raises(InputError, match="bfloat16. Received: .*trial.* with --precision=float32"):
        run.run_piece(piece, runs, tmp_path / "runs.jsonl", str(tmp_path))


def test_the_table_of_questions_is_sound():
    plan = Plan(QUESTIONS, inputs(seeds=(1, 2, 3)))
    kinds = [piece.name.split("/")[-1] for piece in plan.pieces.values()]
    # Nine vocabularies; NSP, none; three maskings; 2 layers, ALBERT twice; Google's; two seeds.
    assert kinds.count("pretraining") == 9 + 2 + 3 + 3 + 1 + 2
    assert len(plan.pieces) == len(set(names(plan.pieces.values())))
    done = set()
    for piece in plan.pieces.values():
        assert {need.folder for need in piece.needs} <= done
        done.add(piece.folder)
    assert all(first_estimate(piece.kind) > 0 for piece in plan.pieces.values())
    assert Estimates(plan.pieces.values(), {}).hours(plan.pieces.values()) > 1
    google = next(p for p in plan.pieces.values() if p.name == "choices/recipe/google/pretraining")
    # The time of an update is measured for both, one directly after the other.
    order = names(plan.pieces.values())
    first, second = (order.index(need.name) for need in google.needs if "trial" in need.name)
    assert second == first + 1


def run_with(name, seconds, scores, seed=None):
    return Run(
        name=name, command="x", machine=Machine("cpu", 2, None), seed=seed, seconds=seconds,
        cpu_seconds=1.0, memory_gib=1.0, scores=scores, date="2026-01-31", code=None,
    )  # fmt: skip


def test_estimates_learn_from_what_is_measured():
    plan = Plan(TWO, inputs(), linear=False)
    first, second = (plan_piece(plan, f"choices/one/a/3i4k/seed{seed}") for seed in (1, 2))
    runs = {first.name: run_with(first.name, 7.0, {})}
    estimates = Estimates(plan.pieces.values(), runs)
    assert estimates.seconds(first) == estimates.seconds(second) == 7
    rows = {row[0]: row[1:3] for row in estimates.table(plan.pieces.values())}
    assert rows["choices/one/a"] == ["6", "1"] and rows["all"] == ["19", "1"]


def plan_piece(plan, name):
    return next(piece for piece in plan.pieces.values() if piece.name == name)


def test_the_tables(tmp_path):
    plan, ledger = Plan(TWO, inputs(), linear=False), tmp_path / "runs.jsonl"
    for name, scores in (("a", (0.5, 0.52)), ("b", (0.7, 0.72))):
        for seed, score in enumerate(scores, 1):
            run = run_with(f"choices/one/{name}/3i4k/seed{seed}", 1.0, {"eval_accuracy": score})
            append_run(ledger, run)
    runs, (one, two) = read_runs(ledger), make_questions(plan, TWO)
    table = question_table(one, runs, ENGLISH)
    assert table[2:] == ["| a | 51.00 ± 1.41 |", "| b | 71.00 ± 1.41 |"]
    assert question_samples(two, runs)["c", "3i4k"] == question_samples(one, runs)["a", "3i4k"]
    assert question_table(two, runs, ENGLISH) == []  # nothing to compare c with
