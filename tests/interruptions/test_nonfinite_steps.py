"""Steps whose loss or gradient is not finite are skipped, reported, and stop a run if too many."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import pretraining
from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.training import mixed_precision
from bert_tf.training.interruptions.nonfinite_steps import SKIPPED_FILE, SkippedSteps
from tests.support.programs import PretrainingJob, arrays, curves, spoken_lines


@pytest.fixture
def job(tmp_path):
    """Records, configurations, and a function that runs the program on them."""
    return PretrainingJob(tmp_path)


def with_loss(monkeypatch, change):
    """Lets `change(loss, batch)` alter the masked words' loss of every training step."""
    sums = pretraining.loss_sums

    def changed(outputs, batch):
        result = sums(outputs, batch)
        return {**result, "masked_lm_loss": change(result["masked_lm_loss"], batch)}

    monkeypatch.setattr(pretraining, "loss_sums", changed)


@pytest.mark.usefixtures("eagerly")
def test_a_step_with_a_nonfinite_loss_is_skipped(job, capsys, monkeypatch):
    """Record 8 of the first file is to blame, once in every pass of five steps.

    The gradient is not affected: `tf.where` passes none on.
    """

    def change(loss, batch):
        return tf.where(tf.reduce_any(batch["input_ids"][:, 0] == 7), np.nan, loss)

    with_loss(monkeypatch, change)
    flags = {"num_train_steps": 10, "save_checkpoints_steps": 5, "max_bad_steps": 1}
    flags |= {"save_summary_steps": 5, "xla": "off"}
    assert job.run(**flags) == 0
    warned = [line for line in spoken_lines(capsys.readouterr().err) if "changed no weight" in line]
    log = (job.output / SKIPPED_FILE).read_text()
    rows = [json.loads(line) for line in log.splitlines()]
    first, second = (row["step"] for row in rows)
    assert 1 <= first <= 5 < second <= 10
    assert len(warned) == 2 and f"warning: step {first} changed" in warned[0]
    for row in rows:
        assert len(row["records"]) == 8 and f"{job.files[0]}:8" in row["records"]
        assert row["loss"] == "nan" and np.isfinite(float(row["gradient_norm"]))
        assert 0 < float(row["learning_rate"]) <= 0.01
    assert [value for _, value in curves(job.output)["health/skipped_steps"]] == [1, 2]
    assert arrays(job.output, 10)["skipped_steps"] == 2
    assert all(np.isfinite(value).all() for value in arrays(job.output, 10).values())
    # A run that resumes from step 5 writes the second of them again, and continues the count.
    for path in job.output.glob("model.ckpt-10.*"):
        path.unlink()
    with open(job.output / SKIPPED_FILE, "a") as file:
        file.write('{"step": 9, "lo')  # cut off by a kill
    assert job.run(**flags) == 0
    assert (job.output / SKIPPED_FILE).read_text() == log
    assert arrays(job.output, 10)["skipped_steps"] == 2


def test_damaged_lines_of_skipped_steps_stay(tmp_path):
    """Whole lines of steps that will come again go, as does a line that was cut off."""
    lines = ['{"step": 3, "loss: "nan"}\n', '{"step": 5}\n', '{"step": 6}\n', '{"step": 2, "lo']
    (tmp_path / SKIPPED_FILE).write_text("".join(lines))
    config = types.SimpleNamespace(output_dir=str(tmp_path))
    SkippedSteps(types.SimpleNamespace(step=5), None, config, writes=True)
    assert (tmp_path / SKIPPED_FILE).read_text() == "".join(lines[:2])


@pytest.mark.usefixtures("eagerly")
def test_too_many_nonfinite_steps_stop_the_run(job, capsys, monkeypatch):
    assert job.run(num_train_steps=4, xla="off") == 0
    good = arrays(job.output, 4)
    capsys.readouterr()
    with_loss(monkeypatch, lambda loss, batch: loss * np.nan)
    flags = {"num_train_steps": 40, "keep_checkpoint_max": 1, "max_bad_steps": 3, "xla": "off"}
    assert job.run(**flags) == 1
    *warned, line = spoken_lines(capsys.readouterr().err)
    assert all(" changed no weight" in text for text in warned) and len(warned) == 4
    assert line.startswith("error: ") and "--max_bad_steps=3" in line and "loss nan" in line
    assert "at step 8" in line
    assert list_checkpoints(job.output) == [4]
    for name, value in arrays(job.output, 4).items():
        np.testing.assert_array_equal(value, good[name])


@pytest.mark.slow
def test_an_exhausted_loss_scale_stops_the_run(job, capsys, monkeypatch):
    """The loss is fine, its gradient is infinite at every scale."""

    @tf.custom_gradient
    def steep(x):
        return x, lambda gradient: gradient * np.inf

    with_loss(monkeypatch, lambda loss, batch: steep(loss))
    monkeypatch.setattr(mixed_precision, "INITIAL_SCALE", 4.0)
    assert job.run(precision="float16", max_bad_steps=0, xla="off") == 1
    *warned, line = spoken_lines(capsys.readouterr().err)
    assert len(warned) == 3  # at the scales 4, 2 and 1
    assert line.startswith("error: float16 gradients must be ") and "loss scale 1, step 3" in line
