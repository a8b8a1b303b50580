"""Heads: equal to what Google's code computed."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import load_google_checkpoint
from bert_tf.objective import total_loss
from bert_tf.optimization import AdamWeightDecay, WarmupPolynomialDecay
from bert_tf.training.evaluation import EvaluationStep
from finetuning.classification.head import SequenceClassifier, regression_losses
from finetuning.heads import classification_losses
from finetuning.question_answering.beam_head import BeamSpanModel, answerable_losses
from finetuning.question_answering.span_head import SpanModel
from tests.support.crosses import slow
from tests.support.golden import (
    FORWARD,
    GOLDEN,
    TRAJECTORY,
    arrays,
    check_gradients,
    encoder,
    facts,
)
from tests.support.tiny_models import step_of, tensors, weights_of

CLASSIFIERS = ("head_bert_classifier", "head_albert_classifier")
REGRESSION = "head_albert_regression_stsb"
SPANS, BEAMS = "head_albert_squad_v1", "head_albert_squad_v2"
MODELS = {
    **dict.fromkeys(CLASSIFIERS, lambda encoder: SequenceClassifier(encoder, 3, dropout=0.0)),
    REGRESSION: lambda encoder: SequenceClassifier(encoder, 1, dropout=0.0),
    SPANS: SpanModel,
    BEAMS: BeamSpanModel,
}

# The flags of Google's program for the goldens; info.json has the results.
RATE, STEPS, WARMUP = 2e-3, 20, 0

# Of a position where no answer may be.
MASKED = -1e29


def google_model(folder):
    """A model with the weights of Google's checkpoint, all of them by its names."""
    model = MODELS[folder](encoder(folder))
    report = load_google_checkpoint(model, str(GOLDEN / folder / "model.ckpt-0"))
    assert len(report.loaded) == len(model.trainable_variables) and not report.missing
    return model


def google_batch(folder):
    """The inputs, every example counted."""
    batch = arrays(folder, "inputs.npz")
    weights = "span_weights" if folder in (SPANS, BEAMS) else "label_weights"
    return {**batch, weights: np.ones(len(batch["input_ids"]), np.float32)}


def losses_of(model, batch):
    """The sums of the losses, and what they are divided by in a training step."""
    objective = model.objective
    sums = objective.loss_sums(model(batch), batch)
    return sums, objective.denominators(objective.weight_sums(batch))


def evaluated(model, batch):
    """The sums of an evaluation."""
    step = EvaluationStep(model, tf.distribute.get_strategy())
    return {name: float(value) for name, value in step(batch).items()}


def assert_forward(found, expected):
    np.testing.assert_allclose(found, expected, atol=FORWARD, rtol=0)


@pytest.mark.parametrize("folder", MODELS)
def test_losses_and_every_gradient(folder):
    model, batch = google_model(folder), google_batch(folder)
    expected = arrays(folder, "outputs_training.npz" if folder == BEAMS else "outputs.npz")
    sums, denominators = losses_of(model, batch)
    assert_forward(total_loss(sums, denominators), expected["loss"])
    if folder == BEAMS:
        found = {name: sums[f"{name}_loss"] / denominators[name] for name in denominators}
        assert_forward(found["span"], 0.5 * (expected["start_loss"] + expected["end_loss"]))
        assert_forward(found["answerable"], 0.5 * expected["answerable_loss"])
    check_gradients(model, lambda: total_loss(*losses_of(model, batch)), folder)


@pytest.mark.parametrize("folder", (*CLASSIFIERS, REGRESSION))
def test_logits_and_accuracy_of_classes(folder):
    model, batch = google_model(folder), google_batch(folder)
    expected, out = arrays(folder, "outputs.npz"), model(batch)
    logits = expected["logits"].reshape(out["logits"].shape)  # of the regression [4] -> [4, 1]
    assert_forward(out["logits"], logits)
    losses = regression_losses if folder == REGRESSION else classification_losses
    assert_forward(losses(out, batch), expected["per_example_loss"])
    sums = evaluated(model, batch)
    if folder == REGRESSION:
        assert set(sums) == {"label_loss", "label_weight"}
        return
    right = expected["logits"].argmax(1) == batch["label_ids"]
    assert 0 < right.sum() < len(right)
    assert sums["label_correct"] == right.sum() and sums["label_weight"] == len(right)


@pytest.mark.parametrize("folder", (slow(CLASSIFIERS[0]), CLASSIFIERS[1]))
def test_five_steps_of_fine_tuning(folder):
    """By the same step that pre-trains; the goldens with the true norm of the gradient."""
    model = google_model(folder)
    optimizer = AdamWeightDecay(WarmupPolynomialDecay(RATE, STEPS, WARMUP))
    optimizer.build(model.trainable_variables)
    step = step_of(model, optimizer)
    batch = tensors(google_batch(folder))
    googles = facts(folder, "info.json")["finetune"]["onehot"]
    for i in range(5):
        metrics = {name: float(value) for name, value in step(batch).items()}
        assert metrics["loss"] == pytest.approx(googles["loss"][i], abs=TRAJECTORY)
        norm = googles["global_norm_of_dense_grads"][i]
        assert metrics["gradient_norm"] == pytest.approx(norm, rel=1e-4)
        assert metrics["learning_rate"] == pytest.approx(googles["learning_rate"][i], rel=1e-6)
    found, expected = weights_of(model), arrays(folder, "finetune_variables_step5_onehot.npz")
    assert set(found) == set(expected)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], atol=TRAJECTORY, rtol=0, err_msg=name)


def test_logits_of_starts_and_ends():
    out = google_model(SPANS)(google_batch(SPANS))
    expected = arrays(SPANS, "outputs.npz")
    for name in ("start_logits", "end_logits"):
        assert_forward(out[name], expected[name])


def test_logits_where_the_start_is_known():
    out = google_model(BEAMS)(google_batch(BEAMS))
    expected = arrays(BEAMS, "outputs_training.npz")
    for end in ("start", "end"):
        found = tf.nn.log_softmax(out[f"{end}_logits"]).numpy()
        of_google = expected[f"{end}_log_probs"]
        np.testing.assert_array_equal(found < MASKED, of_google < MASKED)
        assert 0 < (found < MASKED).sum() < found.size
        kept = of_google > MASKED
        assert_forward(found[kept], of_google[kept])
    assert_forward(out["cls_logits"], expected["cls_logits"])


@pytest.mark.parametrize("xla", (False, slow(True)))
def test_beams(xla):
    """Two examples have fewer positions than a beam: masked ones fill it, in order."""
    model, batch = google_model(BEAMS), google_batch(BEAMS)
    inputs = tensors({k: v for k, v in batch.items() if not k.endswith("_positions")})
    out = tf.function(lambda: model(inputs), jit_compile=xla)()
    expected = arrays(BEAMS, "outputs.npz")
    assert set(out) == set(expected)
    for name, value in expected.items():
        if name.endswith("index"):
            np.testing.assert_array_equal(out[name], value, err_msg=name)
        else:
            kept = value > MASKED
            assert_forward(out[name][kept], value[kept])
            np.testing.assert_allclose(out[name][~kept], value[~kept], rtol=1e-6)
    short = (expected["start_top_log_probs"] < MASKED).any(axis=1)
    assert short.tolist() == [False, False, True, True]


@pytest.mark.parametrize("folder", (SPANS, BEAMS))
def test_what_is_counted_as_right(folder):
    model, batch = google_model(folder), google_batch(folder)
    starts = model(batch)["start_logits"].numpy().argmax(1)
    starts[1] += 1
    batch["start_positions"] = starts
    ends = model(batch)["end_logits"].numpy().argmax(1)  # with beams they depend on the starts
    ends[2] += 1
    batch["end_positions"] = ends
    out = model(batch)
    sums = evaluated(model, batch)
    assert sums["span_correct"] == 2 and sums["span_weight"] == 4
    if folder == BEAMS:
        right = (out["cls_logits"].numpy() > 0) == batch["is_impossible"]
        assert sums["answerable_correct"] == right.sum()
        half = answerable_losses(out, batch).numpy().sum()
        assert sums["answerable_loss"] == pytest.approx(half, abs=1e-6)
