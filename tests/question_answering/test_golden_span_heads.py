"""Heads that find answers: equal to what Google's code computed."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import load_google_checkpoint
from bert_tf.objective import total_loss
from bert_tf.training.evaluation import EvaluationStep
from finetuning.question_answering.beam_head import BeamSpanModel, answerable_losses
from finetuning.question_answering.span_head import SpanModel
from tests.support.golden import FORWARD, GOLDEN, arrays, check_gradients, encoder

PLAIN, BEAMS = "head_albert_squad_v1", "head_albert_squad_v2"

# Of a position where no answer may be.
MASKED = -1e29


def google_model(folder):
    """A model with the weights of Google's checkpoint, all of them by its names."""
    model = SpanModel(encoder(folder)) if folder == PLAIN else BeamSpanModel(encoder(folder))
    report = load_google_checkpoint(model, str(GOLDEN / folder / "model.ckpt-0"))
    assert len(report.loaded) == len(model.trainable_variables) and not report.missing
    return model


def google_batch(folder):
    """The inputs, every example counted."""
    batch = arrays(folder, "inputs.npz")
    return {**batch, "span_weights": np.ones(len(batch["input_ids"]), np.float32)}


def test_logits_of_starts_and_ends():
    out = google_model(PLAIN)(google_batch(PLAIN))
    expected = arrays(PLAIN, "outputs.npz")
    for name in ("start_logits", "end_logits"):
        np.testing.assert_allclose(out[name], expected[name], atol=FORWARD, rtol=0)


def test_logits_where_the_start_is_known():
    out = google_model(BEAMS)(google_batch(BEAMS))
    expected = arrays(BEAMS, "outputs_training.npz")
    for end in ("start", "end"):
        found = tf.nn.log_softmax(out[f"{end}_logits"]).numpy()
        of_google = expected[f"{end}_log_probs"]
        np.testing.assert_array_equal(found < MASKED, of_google < MASKED)
        assert 0 < (found < MASKED).sum() < found.size
        kept = of_google > MASKED
        np.testing.assert_allclose(found[kept], of_google[kept], atol=FORWARD, rtol=0)
    np.testing.assert_allclose(out["cls_logits"], expected["cls_logits"], atol=FORWARD, rtol=0)


@pytest.mark.parametrize("xla", (False, pytest.param(True, marks=pytest.mark.slow)))
def test_beams(xla):
    """Two examples have fewer positions than a beam: masked ones fill it, in order."""
    model, batch = google_model(BEAMS), google_batch(BEAMS)
    inputs = {k: v for k, v in batch.items() if k not in ("start_positions", "end_positions")}
    run = tf.function(
        lambda: model({k: tf.constant(v) for k, v in inputs.items()}), jit_compile=xla
    )
    out, expected = run(), arrays(BEAMS, "outputs.npz")
    assert set(out) == set(expected)
    for name, value in expected.items():
        if name.endswith("index"):
            np.testing.assert_array_equal(out[name], value, err_msg=name)
        else:
            kept = value > MASKED
            np.testing.assert_allclose(out[name][kept], value[kept], atol=FORWARD, rtol=0)
            np.testing.assert_allclose(out[name][~kept], value[~kept], rtol=1e-6)
    short = (expected["start_top_log_probs"] < MASKED).any(axis=1)
    assert short.tolist() == [False, False, True, True]


@pytest.mark.parametrize("folder", (PLAIN, BEAMS))
def test_losses_and_every_gradient(folder):
    model, batch = google_model(folder), google_batch(folder)
    objective = model.objective
    denominators = objective.denominators(objective.weight_sums(batch))

    def sums():
        return objective.loss_sums(model(batch), batch)

    expected = arrays(folder, "outputs.npz" if folder == PLAIN else "outputs_training.npz")
    if folder == BEAMS:
        found = {name: sums()[f"{name}_loss"] / denominators[name] for name in denominators}
        span = 0.5 * (expected["start_loss"] + expected["end_loss"])
        np.testing.assert_allclose(found["span"], span, atol=FORWARD, rtol=0)
        answerable = 0.5 * expected["answerable_loss"]
        np.testing.assert_allclose(found["answerable"], answerable, atol=FORWARD, rtol=0)
    total = total_loss(sums(), denominators)
    np.testing.assert_allclose(total, expected["loss"], atol=FORWARD, rtol=0)
    check_gradients(model, lambda: total_loss(sums(), denominators), folder)


@pytest.mark.parametrize("folder", (PLAIN, BEAMS))
def test_what_is_counted_as_right(folder):
    model, batch = google_model(folder), google_batch(folder)
    starts = model(batch)["start_logits"].numpy().argmax(1)
    starts[1] += 1
    batch["start_positions"] = starts
    ends = model(batch)["end_logits"].numpy().argmax(1)  # with beams they depend on the starts
    ends[2] += 1
    batch["end_positions"] = ends
    out = model(batch)
    step = EvaluationStep(model, tf.distribute.get_strategy())
    sums = {name: float(value) for name, value in step(batch).items()}
    assert sums["span_correct"] == 2 and sums["span_weight"] == 4
    if folder == BEAMS:
        right = (out["cls_logits"].numpy() > 0) == batch["is_impossible"]
        assert sums["answerable_correct"] == right.sum()
        half = answerable_losses(out, batch).numpy().sum()
        assert sums["answerable_loss"] == pytest.approx(half, abs=1e-6)
