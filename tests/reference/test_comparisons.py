"""Tests of what the pages of results say of variants: differences, trivial answers, times."""

import dataclasses
import math

import pytest
from measured_runs import ONE, make_run

from run_scripts.reference.ledger import Machine
from run_scripts.reference.pages.english import ENGLISH
from run_scripts.reference.pages.paired import paired_lines
from run_scripts.reference.pages.questions import Cell, Question
from run_scripts.reference.pages.statistics import (
    SIGNIFICANCE,
    chances,
    least_difference,
    rank,
    sample,
)
from run_scripts.reference.pages.tables import (
    compared_tasks,
    least_differences,
    question_sentences,
    question_table,
)


def test_sample():
    """The deviation of 1, 2, 4 with n - 1: sqrt((16 + 1 + 25) / 9 / 2), worked out by hand."""
    found = sample([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(7 / 3) and found.scores == (1.0, 2.0, 4.0)
    assert found.deviation == pytest.approx(math.sqrt(42 / 18))
    assert sample([3.0]).deviation is None
    assert sample([]) is None and sample([1.0, None]) is None


# Variants -> the quantile of the studentized range for 5 %, of printed tables: 4 seeds each leave 3
# degrees of freedom a variant. For two variants it is sqrt(2) times Student's t, 2.447.
STUDENTIZED_RANGE = {2: 3.46, 3: 3.95, 5: 4.37}


@pytest.mark.parametrize("count", STUDENTIZED_RANGE)
def test_told_apart(count):
    """All have a deviation of 1 and 4 seeds, so that the mean's standard error is 1/2."""
    values = [-(0.75**0.5), -(0.75**0.5), 0.75**0.5, 0.75**0.5]
    assert sample(values).deviation == pytest.approx(1)
    limit = STUDENTIZED_RANGE[count] / 2
    for difference, apart in ((limit - 0.01, False), (limit + 0.01, True)):
        samples = [sample(values)] * (count - 1)
        found = chances([*samples, sample([value + difference for value in values])])
        assert found[0][-1] == pytest.approx(found[-1][0])
        assert (found[0][-1] < SIGNIFICANCE) == apart


def test_scores_without_spread():
    one, same, other = sample([1.0, 1.0]), sample([1.0, 1.0]), sample([2.0, 2.0])
    assert chances([one, same, other]) == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_ranking():
    samples = {"a": sample([0.8, 0.81]), "b": sample([0.9, 0.91]), "c": sample([0.9, 0.908])}
    assert rank(samples, "eval_accuracy") == ("b", ("c",), ("a",))
    assert rank(samples, "masked_lm_loss") == ("a", (), ("b", "c"))
    assert rank({**samples, "d": sample([0.99]), "e": None}, "eval_f1").best == "b"
    assert rank({"a": samples["a"], "d": sample([0.99])}, "eval_f1") is None
    assert rank(samples, "eval_accuracy", least=0.09) == ("b", ("c",), ("a",))
    assert rank(samples, "eval_accuracy", least=0.11) == ("b", ("a", "c"), ())


# Degrees of freedom -> Student's t for 5 %, two-sided, of printed tables.
STUDENTS_T = {1: 12.706, 2: 4.303, 4: 2.776}


@pytest.mark.parametrize("freedom", STUDENTS_T)
def test_least_difference(freedom):
    models = sample([80.0, *([81.0, 82.0] * freedom)[:freedom]])
    expected = STUDENTS_T[freedom] * math.sqrt(2) * models.deviation
    assert least_difference(models) == pytest.approx(expected, rel=1e-3)


def test_spread_of_pretraining():
    """The models' means, of two seeds each, are 80, 81 and 82; times have no sentence."""
    means = {"seed-1": 0.80, "seed-2": 0.81, "seed-3": 0.82, "random-weights": 0.5}
    runs = {
        f"{variant}{i}": make_run("x", {"eval_accuracy": mean + d, "seconds": mean + d})
        for variant, mean in means.items()
        for i, d in enumerate((-0.05, 0.05))
    }
    cells = tuple(
        Cell(variant=variant, task=task, score=score, runs=(f"{variant}0", f"{variant}1"))
        for variant in means
        for task, score in (("nsmc", "eval_accuracy"), ("time", "seconds"))
    )
    seeds = ("seed-1", "seed-2", "seed-3", "seed-4")
    question = Question(name="q", title="q", title_ko="q", cells=cells, replicates=seeds)
    (sentence,) = question_sentences(question, runs, ENGLISH)
    assert sentence.startswith("- nsmc: 3 models with")
    assert "have 81.00 ± 1.00" in sentence and "less than 6.08" in sentence  # 4.303 * sqrt(2)
    alone = {name: run for name, run in runs.items() if name[:6] not in ("seed-2", "seed-3")}
    assert question_sentences(question, alone, ENGLISH) == []
    least = least_differences([question, dataclasses.replace(question, replicates=())], runs)
    assert least == {"nsmc": pytest.approx(4.303 * math.sqrt(2), rel=1e-3)}
    ranked = dataclasses.replace(question, replicates=())
    for limit, is_worse in ((31, True), (33, False)):  # the difference is 32
        (sentence, _) = question_sentences(ranked, runs, ENGLISH, {"nsmc": limit})
        assert sentence.startswith("- nsmc: best is seed-3; cannot be told apart from it: seed-1, ")
        assert ("worse: random-weights" in sentence) == is_worse
    in_settings = dataclasses.replace(ranked, paired={"a": ("seed-1",), "b": ("seed-2",)})
    assert question_sentences(in_settings, runs, ENGLISH) == []


def test_differences_setting_by_setting():
    """For two degrees of freedom p is 1 - t / sqrt(t^2 + 2); t of 1, 2, 3 is 2 sqrt(3)."""
    accuracies = {"old": (0.80, 0.90, 0.70), "new": (0.81, 0.92, 0.73), "same": (0.80, 0.90, 0.70)}
    runs = {
        f"{way}{i}": make_run("x", {"eval_accuracy": value, "bits": value, "half": value})
        for way, values in accuracies.items()
        for i, value in enumerate(values)
    }
    cells = tuple(
        Cell(variant=name, task=task, score=score, runs=(name,))
        for name in runs
        for task, score in (("nsmc", "eval_accuracy"), ("text", "bits"))
    )
    cells += tuple(
        Cell(variant=name, task="two", score="half", runs=(name,))
        for name in runs
        if not name.endswith("0")
    )
    cells += tuple(  # measured in one setting alone
        Cell(variant=name, task="one", score="half", runs=(name,)) for name in ("old1", "new1")
    )
    paired = {way: tuple(f"{way}{i}" for i in range(3)) for way in accuracies}
    question = Question(name="q", title="q", title_ko="q", cells=cells, paired=paired)
    note, _, header, _, new, same, _ = paired_lines(question, runs, ENGLISH)
    p = 1 - math.sqrt(12) / math.sqrt(14)
    assert note.startswith("The differences from old of the same size")
    assert header == "| difference | nsmc | text | two |"
    assert f"| new | +2.00 ± 1.00 (p = {p:.2g}) | +0.020 ± 0.010 (p = {p:.2g}) | +0.025 ±" in new
    assert same == "| same | +0.00 ± 0.00 | +0.000 ± 0.000 | +0.000 ± 0.000 |"
    assert question_sentences(question, runs, ENGLISH) == []
    assert paired_lines(dataclasses.replace(question, paired={}), runs, ENGLISH) == []
    assert paired_lines(question, {"old0": runs["old0"], "new0": runs["new0"]}, ENGLISH) == []


@pytest.mark.parametrize("trivial", (0.5, 0.9))
def test_scores_that_a_trivial_answer_has(trivial):
    values = {"a": (0.6, 0.61), "b": (0.7, 0.71)}
    runs = {
        f"{variant}{i}": make_run("x", {"eval_f1": value, "baseline_f1": trivial})
        for variant, pair in values.items()
        for i, value in enumerate(pair)
    }
    cells = tuple(
        Cell(variant=variant, task="korquad", score="eval_f1", runs=(f"{variant}0", f"{variant}1"))
        for variant in values
    )
    question = Question(name="q", title="q", title_ko="q", cells=cells)
    rows = question_table(question, runs, ENGLISH)
    assert rows[-1] == f"| the trivial answer | {100 * trivial:.2f} |"
    (sentence,) = question_sentences(question, runs, ENGLISH)
    assert ("no order" in sentence) == (trivial > 0.7) == ("best is" not in sentence)


@pytest.mark.parametrize("other", (ONE, Machine("CPU two", 16, 128.0)))
def test_times_of_different_machines_are_not_compared(other):
    places = {"a": ONE, "b": other}
    runs = {
        name: make_run(name, {"seconds_per_update": 0.5, "eval_accuracy": 0.5}, machine)
        for name, machine in places.items()
    }
    cells = tuple(
        Cell(variant=name, task=task, score=score, runs=(name,))
        for name in runs
        for task, score in (("nsmc", "eval_accuracy"), ("time", "seconds_per_update"))
    )
    question = Question(name="q", title="q", title_ko="q", cells=cells)
    assert compared_tasks(question, runs) == ["nsmc", "time"][: 1 + (other == ONE)]


def test_one_run_may_measure_all_variants():
    """The speed of the same run is no comparison, its bits of each model are."""
    runs = {"both": make_run("both", {"a_bits": 2.5, "b_bits": 2.75, "seconds": 1.0})}
    cells = tuple(
        Cell(variant=variant, task=task, score=score, runs=("both",))
        for variant in ("a", "b")
        for task, score in (("bits", f"{variant}_bits"), ("time", "seconds"))
    )
    question = Question(name="q", title="q", title_ko="q", cells=cells)
    assert compared_tasks(question, runs) == ["bits"]
    assert question_table(question, runs, ENGLISH)[2:] == ["| a | 2.5 |", "| b | 2.75 |"]
