"""A training that is limited by time: its learning rate, its end, its later starts."""

import itertools

import numpy as np
import pytest

from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.optimization import TIMED_WARMUP, TimedDecay
from bert_tf.training import time_budget
from bert_tf.training.evaluation import RecordsEvaluator
from bert_tf.training.time_budget import TimeBudget
from model_formats.model_folder import ModelFolder
from run_scripts import pretrain
from tests.support.crosses import slow
from tests.support.programs import NO_DROPOUT, PretrainingJob, arrays, curves, results
from tests.support.tiny_models import ONE_LAYER


@pytest.fixture
def ticks(monkeypatch):
    """A clock that a second passes on whenever somebody looks at it."""
    clock = itertools.count(100)
    monkeypatch.setattr(time_budget, "monotonic", lambda: float(next(clock)))
    return clock


def test_the_rate_follows_the_time():
    budget = TimeBudget(200.0)
    schedule, rates = TimedDecay(0.01, budget.variable, power=2.0), []
    for spent in (0.0, TIMED_WARMUP / 2, TIMED_WARMUP, 0.5, 1.0, 1.5):
        budget.set_share(spent)
        rates.append(float(schedule(7)))
    expected = [0, 0.005 * 0.975**2, 0.01 * 0.95**2, 0.01 * 0.25, 0, 0]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_earlier_starts_count(ticks):
    budget = TimeBudget(10.0)
    assert budget.spent == 0 and not budget.is_over
    budget.resume(4.0)
    assert budget.spent == 4 and budget.share == pytest.approx(0.4)
    budget.begin()
    assert [budget.spent, budget.spent] == [5, 6]
    budget.set_share(1.01)
    assert budget.is_over and float(budget.variable) == 1


@pytest.mark.parametrize("strategy", ("one_device", slow("mirrored")))
def test_a_run_ends_when_the_time_is_over(ticks, tmp_path, capsys, strategy):
    job = PretrainingJob(tmp_path, **NO_DROPOUT, **ONE_LAYER)
    flags = {"max_train_hours": 60 / 3600, "learning_rate": 1e-3, "num_train_steps": 3}
    flags |= {"save_checkpoints_steps": 5, "save_summary_steps": 1, "do_eval": True}
    flags |= {"distribution_strategy": strategy, "xla": "off"}
    assert job.run(**flags) == 0
    shown = capsys.readouterr().out
    assert "note: without effect beside --max_train_hours: --num_train_steps" in shown
    assert "step 1 onwards for 0.02 hours from" in shown
    last = list_checkpoints(job.output)[-1]
    assert f"the time is over after step {last}\n" in shown and last > 3
    assert results(job.output)["global_step"] == last
    settings = ModelFolder(str(job.output)).stages[-1]["settings"]
    assert not {"num_train_steps", "num_warmup_steps"} & set(settings)
    rates = [value for _, value in curves(job.output)["learning_rate"]]
    assert rates[0] < 0.5e-3 < max(rates) and rates[-1] < 0.1e-3 and len(rates) == last
    spent = arrays(job.output, last)["spent_seconds"]
    assert 60 <= spent < 70

    flags["do_eval"] = False
    assert job.run(**flags) == 0
    assert f"already at step {last}: nothing to train (more time" in capsys.readouterr().out

    assert job.run(**{**flags, "max_train_hours": 120 / 3600}) == 0
    shown = capsys.readouterr().out
    assert f"step {last + 1} onwards for 0.0" in shown
    longer = list_checkpoints(job.output)[-1]
    assert last < longer < 3 * last
    assert 120 <= arrays(job.output, longer)["spent_seconds"] < 130
    rates = dict(curves(job.output)["learning_rate"])
    assert 0.3e-3 < rates[last + 2] < 0.5e-3 and rates[longer] < 0.1e-3


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "owner, name, last", ((RecordsEvaluator, "run", 2), (pretrain, "make_evaluator", 1))
)
def test_an_evaluation_that_takes_the_rest(ticks, tmp_path, monkeypatch, owner, name, last):
    """Or the compiling of it.

    No update follows, nor is the model evaluated once more, at the same weights or at later ones.
    """
    original, made = getattr(owner, name), []

    def slowly(*arguments):
        made.append([next(ticks) for _ in range(60)])
        return original(*arguments)

    monkeypatch.setattr(owner, name, slowly)
    job = PretrainingJob(tmp_path, **NO_DROPOUT, **ONE_LAYER)
    flags = {"max_train_hours": 60 / 3600, "eval_input_file": job.files[0], "max_eval_steps": 1}
    assert job.run(**flags, eval_every_steps=2) == 0
    assert list_checkpoints(job.output) == [last] and len(made) == 1
