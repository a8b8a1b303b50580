"""Runs that are stopped near an evaluation: each evaluation is made once, the best is kept."""

import itertools
import os
import signal
import time
import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoint_files import (
    best_checkpoint,
    checkpoint_path,
    list_checkpoints,
    remove_checkpoint,
)
from bert_tf.training import loop as training
from bert_tf.training.evaluation import RecordsEvaluator, write_results
from bert_tf.training.state import BestCheckpoint, TrainingState, save
from finetuning.prediction import TaskEvaluator
from model_formats.model_folder import ModelFolder
from tests.support.programs import (
    NO_DROPOUT,
    RUN,
    arrays,
    assert_same,
    curves,
    results,
)
from tests.support.record_files import FORMAT, features, write_records
from tests.support.tiny_models import ONE_LAYER, make_optimizer, tiny_model, training_config


class Killed(BaseException):
    """Ends a run as a signal that no handler sees."""


@pytest.mark.slow
def test_a_kill_beside_an_evaluation_loses_none(job, monkeypatch):
    """However near to a checkpoint of the same step: its evaluation is made, and drawn once."""
    flags = {"num_train_steps": 8, "save_checkpoints_steps": 4, "eval_every_steps": 2}
    flags |= {"eval_input_file": job.make_held_out(), "save_summary_steps": 2, "xla": "off"}

    def killed(calls, before):
        """Saving that is killed at a call: before the checkpoint is there, or after."""
        counter = itertools.count(1)

        def save_or_die(*arguments):
            last = next(counter) == calls
            if last and before:
                raise Killed
            write = start_saving(*arguments)
            if last:
                write()
                raise Killed
            return write

        return save_or_die

    start_saving = training.start_saving
    for calls, before in ((1, True), (1, False), (1, True)):
        monkeypatch.setattr(training, "start_saving", killed(calls, before))
        with pytest.raises(Killed):
            job.run(**flags)
    monkeypatch.setattr(training, "start_saving", start_saving)
    assert job.run(**flags) == 0
    assert [step for step, _ in curves(job.output / "eval")["loss/masked_lm"]] == [2, 4, 6, 8]
    assert [step for step, _ in curves(job.output)["loss/masked_lm"]] == [2, 4, 6, 8]


@pytest.fixture
def held_out(job):
    """The flags of a run of six steps with three evaluations on held-out records."""
    job.configure(**NO_DROPOUT)
    return {"eval_input_file": job.make_held_out(), "eval_every_steps": 2, "xla": "off"}


@pytest.fixture
def evaluated(job, held_out):
    """The same, after such a run that was never stopped."""
    assert job.run(**held_out, output_dir=job.folder / "whole") == 0
    return held_out


@pytest.mark.slow
@pytest.mark.parametrize("step", (4, 6))
def test_a_signal_before_an_evaluation(job, evaluated, capsys, monkeypatch, step):
    """The checkpoint comes first, as there may be little time; the resume evaluates."""
    assert job.stop(monkeypatch, signal.SIGTERM, step, **evaluated) == 0
    assert f"stopped by SIGTERM after step {step} of 6" in capsys.readouterr().out
    before = [at for at, _ in curves(job.output / "eval")["loss/masked_lm"]]
    assert before == list(range(2, step, 2))
    assert list_checkpoints(job.output)[-1] == step
    assert job.run(**evaluated) == 0
    assert "steps 7 to 6" not in capsys.readouterr().out
    expected = curves(job.folder / "whole" / "eval")
    # Sorted: two files of events that were begun in one second have names in any order.
    found = curves(job.output / "eval")
    assert {name: sorted(points) for name, points in found.items()} == expected
    assert len(expected["loss/masked_lm"]) == 3
    assert_same(arrays(job.output, 6), arrays(job.folder / "whole", 6))
    assert results(job.output / "best") == results(job.folder / "whole" / "best")
    assert job.run(**evaluated) == 0
    assert "already at step 6" in capsys.readouterr().out


@pytest.mark.slow
def test_an_evaluation_that_is_made_up_is_saved_before_xla_compiles(
    job, evaluated, capsys, monkeypatch
):
    """A signal that comes then ends the process at once, as nothing is to be saved."""
    assert job.stop(monkeypatch, signal.SIGTERM, 4, **evaluated) == 0
    start_saving, make_steps, events = training.start_saving, training._make_steps, []

    def slow(*arguments):
        write = start_saving(*arguments)
        return lambda: (time.sleep(2), write(), events.append("written"))

    def compiling(*arguments):
        events.append("compiling")
        return make_steps(*arguments)

    monkeypatch.setattr(training, "start_saving", slow)
    monkeypatch.setattr(training, "_make_steps", compiling)
    assert job.run(**evaluated) == 0
    assert events[:2] == ["written", "compiling"]


@pytest.mark.usefixtures("eagerly")
def test_nothing_is_compiled_after_the_last_evaluation(job, held_out, monkeypatch):
    """XLA would take minutes for a step that is never made."""
    assert job.run(num_train_steps=2) == 0
    monkeypatch.setattr(training, "_make_steps", None)
    assert job.run(num_train_steps=2, **held_out) == 0
    assert [step for step, _ in curves(job.output / "eval")["loss/masked_lm"]] == [2]
    assert best_checkpoint(job.output / "best") == checkpoint_path(job.output / "best", 2)


@pytest.mark.slow
def test_a_signal_during_an_evaluation(job, evaluated, capsys, monkeypatch):
    """It is not followed by another loop.

    Before the first one, which XLA compiles, all is saved, and the process would end at once.
    """
    run, requests, seen = RecordsEvaluator.run, [], []

    class Noted(training.StopRequest):
        def __init__(self):
            super().__init__()
            requests.append(self)

    def with_signal(self):
        seen.append((list_checkpoints(job.output), requests[-1].nothing_to_save))
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return run(self)

    monkeypatch.setattr(training, "StopRequest", Noted)
    monkeypatch.setattr(RecordsEvaluator, "run", with_signal)
    assert job.run(**evaluated) == 0
    assert seen == [([2], True), ([2], False)]
    assert "stopped by SIGTERM after step 4 of 6" in capsys.readouterr().out
    assert list_checkpoints(job.output) == [2, 4]
    monkeypatch.setattr(RecordsEvaluator, "run", run)
    assert job.run(**evaluated) == 0
    assert curves(job.output / "eval") == curves(job.folder / "whole" / "eval")


def test_a_kill_while_a_checkpoint_is_replaced_after_its_evaluation(tmp_path):
    """Its new data file is there already, with the old index: only the evaluation is made again."""
    model = tiny_model(**ONE_LAYER)
    optimizer = make_optimizer("adamw", model)
    state, config = TrainingState(model, optimizer, step=6), training_config(tmp_path)
    save(state, config)
    index = tmp_path / "model.ckpt-6.index"
    old = index.read_bytes()
    state.evaluated = 6
    save(state, config)
    resumed = TrainingState(model, optimizer)
    resumed.load(checkpoint_path(tmp_path, 6))
    assert (resumed.step, resumed.evaluated) == (6, 6)
    index.write_bytes(old)
    resumed.load(checkpoint_path(tmp_path, 6))
    assert (resumed.step, resumed.evaluated) == (6, 0)


@pytest.mark.slow
def test_the_best_checkpoint_survives_a_resume(job, monkeypatch):
    """best/ has the lowest held-out loss of all evaluations, those before the resume included."""
    held_out = job.make_held_out()
    # The rate grows all the way, so that the loss falls first and rises then.
    flags = {**RUN, "eval_input_file": held_out, "eval_every_steps": 4}
    flags |= {"learning_rate": 0.5, "num_warmup_steps": RUN["num_train_steps"]}
    assert job.stop(monkeypatch, signal.SIGTERM, 14, **flags) == 0
    assert job.run(**flags) == 0
    points = curves(job.output / "eval")["loss/masked_lm"]
    assert [step for step, _ in points] == [4, 8, 12, 16, 20]
    loss, best = min((loss, step) for step, loss in points)
    assert best < 14  # or a resume that forgets would not be noticed
    folder = job.output / "best"
    assert list_checkpoints(folder) == [best]
    assert results(folder)["global_step"] == best
    assert results(folder)["masked_lm_loss"] == pytest.approx(loss)
    again = {"do_train": False, "do_eval": True, "init_checkpoint": folder / f"model.ckpt-{best}"}
    again |= {"eval_input_file": held_out, "output_dir": job.folder / "again", "xla": "off"}
    assert job.run(**again) == 0
    assert results(job.folder / "again")["masked_lm_loss"] == pytest.approx(loss)


@pytest.mark.usefixtures("eagerly")
def test_without_masked_words_the_pairs_choose_the_best_checkpoint(tmp_path):
    """A loss of nothing is no 0, which every later evaluation would have to beat."""
    rng, name = np.random.default_rng(0), "next_sentence"
    nothing = {"masked_lm_weights": [0.0] * FORMAT.max_predictions_per_seq}
    rows = [{**features(rng, number), **nothing} for number in range(20)]
    write_records(tmp_path / "part", rows, FORMAT)
    evaluator = RecordsEvaluator(
        tiny_model("bert", num_hidden_layers=1), tf.distribute.get_strategy(),
        [str(tmp_path / "part")], FORMAT, batch_size=8, max_batches=100,
    )  # fmt: skip
    results = evaluator.run()
    assert set(results) == {"loss", f"{name}_loss", f"{name}_accuracy", "examples"}
    assert evaluator.score(results) == -results[f"{name}_loss"] < 0
    assert evaluator.score({**results, "masked_lm_loss": 7.0}) == -7


@pytest.fixture
def saved(tmp_path):
    """Saves after a step of a run that began at another, if the results are better."""
    model, folder = tiny_model("bert", num_hidden_layers=1), str(tmp_path / "best")

    def save(start, step, score=lambda results: -results["loss"], **results):
        best = BestCheckpoint(folder, score, start, writes=True)
        best.save_if_better(types.SimpleNamespace(model=model, step=step), results)
        return list_checkpoints(folder)

    return save


def test_what_the_best_so_far_is_compared_with(saved, tmp_path):
    assert saved(0, 9, loss=1.0) == [9]
    # Not with steps that will be made again.
    assert saved(2, 4, loss=2.0, examples=5) == [4]
    assert saved(4, 6, loss=3.0, examples=5) == [4]
    # Nor on other data: with a harder --eval_input_file none would ever be better.
    with pytest.warns(UserWarning, match="evaluated on 5 examples, this one on 1,000: the best"):
        assert saved(6, 8, loss=4.0, examples=1000) == [8]
    assert saved(8, 10, loss=5.0, examples=1000) == [8]
    # Nor without its weights, as where a folder was copied without them.
    remove_checkpoint(checkpoint_path(tmp_path / "best", 8))
    assert saved(10, 12, loss=6.0) == [12]


def test_results_without_the_score_are_not_compared(saved):
    """The dev file had scored pairs before the resume; now it has pairs, which are ranked."""
    found = []
    for step, name, value in ((2, "spearman", 0.9), (4, "mrr_at_10", 0.3), (6, "mrr_at_10", 0.2)):
        task = types.SimpleNamespace(best_by=(f"eval_{name}", True))
        score = TaskEvaluator(task, None, None, 8, (16,)).score
        found.append(saved(step - 2, step, score, **{f"eval_{name}": value}))
    assert found == [[2], [4], [4]]


def test_the_best_checkpoint_is_that_of_the_results(tmp_path):
    """A kill while the best one is replaced leaves two; the other may be of an abandoned run."""
    best = tmp_path / "best"
    best.mkdir()
    assert best_checkpoint(str(best)) is None
    for step in (3, 7):
        (best / f"model.ckpt-{step}.index").touch()
    assert best_checkpoint(str(best)) == str(best / "model.ckpt-7")  # not evaluated yet
    write_results(str(best), {"global_step": 3, "loss": 1.5})
    assert best_checkpoint(str(best)) == str(best / "model.ckpt-3")
    assert ModelFolder(str(tmp_path)).checkpoint == ModelFolder(str(best)).checkpoint
    assert ModelFolder(str(best)).checkpoint == str(best / "model.ckpt-3")
    write_results(str(best), {"global_step": 5, "loss": 1.5})  # its files are gone
    assert best_checkpoint(str(best)) == str(best / "model.ckpt-7")


@pytest.mark.parametrize("killed_at", ("write_results", "remove_checkpoint", "note_checkpoints"))
def test_a_kill_while_the_best_is_replaced(saved, tmp_path, monkeypatch, killed_at):
    """The run before had gone on to step 9; this one resumed from 2 and is better at 4."""
    folder = str(tmp_path / "best")
    saved(0, 9, loss=1.0)
    with monkeypatch.context() as context:
        killed = mock.Mock(side_effect=KeyboardInterrupt)
        context.setattr(f"bert_tf.training.state.{killed_at}", killed)
        with pytest.raises(KeyboardInterrupt):
            saved(2, 4, loss=0.5)
    step = 9 if killed_at == "write_results" else 4
    assert best_checkpoint(folder) == checkpoint_path(folder, step)
    assert saved(2, 4, loss=0.5) == [4]  # resumed
    assert best_checkpoint(folder) == checkpoint_path(folder, 4)
