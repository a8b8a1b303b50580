"""Classification and regression heads: equal to what Google's code computed."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import load_google_checkpoint
from bert_tf.checkpoint import google_variables
from bert_tf.objective import total_loss
from bert_tf.optimization import AdamWeightDecay, WarmupPolynomialDecay
from bert_tf.training.evaluation import EvaluationStep
from finetuning.classification.head import SequenceClassifier, regression_losses
from finetuning.heads import classification_losses
from tests.support.golden import (
    FORWARD,
    GOLDEN,
    GRADIENT,
    GRADIENT_FLOOR,
    TRAJECTORY,
    arrays,
    encoder,
    facts,
)
from tests.support.tiny_models import step_of

CLASSIFIERS = ("head_bert_classifier", "head_albert_classifier")
REGRESSION = "head_albert_regression_stsb"

# The flags of Google's program for the goldens; info.json has the results.
RATE, STEPS, WARMUP = 2e-3, 20, 0


def google_classifier(folder):
    """A model with the weights of Google's checkpoint, all of them by its names."""
    model = SequenceClassifier(encoder(folder), 1 if folder == REGRESSION else 3, dropout=0.0)
    report = load_google_checkpoint(model, str(GOLDEN / folder / "model.ckpt-0"))
    assert {"output_weights", "output_bias"} < set(report.loaded) and not report.missing
    return model


def google_batch(folder):
    """The inputs, every example counted."""
    batch = arrays(folder, "inputs.npz")
    return {**batch, "label_weights": np.ones(len(batch["label_ids"]), np.float32)}


def loss_of(model, batch):
    """The loss as a training step forms it."""
    objective = model.objective
    denominators = objective.denominators(objective.weight_sums(batch))
    return total_loss(objective.loss_sums(model(batch), batch), denominators)


@pytest.fixture(scope="module", params=(*CLASSIFIERS, REGRESSION))
def golden(request):
    return request.param, google_classifier(request.param), google_batch(request.param)


def test_logits_and_losses(golden):
    folder, model, batch = golden
    expected = arrays(folder, "outputs.npz")
    out = model(batch)
    logits = expected["logits"].reshape(out["logits"].shape)  # of the regression [4] -> [4, 1]
    np.testing.assert_allclose(out["logits"], logits, atol=FORWARD, rtol=0)
    losses = regression_losses if folder == REGRESSION else classification_losses
    expected_losses = expected["per_example_loss"]
    np.testing.assert_allclose(losses(out, batch), expected_losses, atol=FORWARD, rtol=0)
    np.testing.assert_allclose(loss_of(model, batch), expected["loss"], atol=FORWARD, rtol=0)


def test_every_gradient(golden):
    folder, model, batch = golden
    variables = google_variables(model)
    with tf.GradientTape() as tape:
        loss = loss_of(model, batch)
    gradients = tape.gradient(loss, [v.value for v in variables.values()])
    expected = arrays(folder, "grads.npz")
    assert set(variables) == set(expected) - {"__global_norm_google__"}
    for name, gradient in zip(variables, gradients, strict=True):
        bound = max(GRADIENT * np.abs(expected[name]).max(), GRADIENT_FLOOR)
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient), expected[name], atol=bound, rtol=0, err_msg=name
        )


def test_accuracy_counts_the_right_classes(golden):
    folder, model, batch = golden
    step = EvaluationStep(model, tf.distribute.get_strategy())
    sums = {name: float(value) for name, value in step(batch).items()}
    if folder == REGRESSION:
        assert set(sums) == {"label_loss", "label_weight"}
        return
    right = arrays(folder, "outputs.npz")["logits"].argmax(1) == batch["label_ids"]
    assert 0 < right.sum() < len(right)
    assert sums["label_correct"] == right.sum() and sums["label_weight"] == len(right)


@pytest.mark.parametrize(
    "folder", (pytest.param(CLASSIFIERS[0], marks=pytest.mark.slow), CLASSIFIERS[1])
)
def test_five_steps_of_fine_tuning(folder):
    """By the same step that pre-trains; the goldens with the true norm of the gradient."""
    model = google_classifier(folder)
    optimizer = AdamWeightDecay(WarmupPolynomialDecay(RATE, STEPS, WARMUP))
    optimizer.build(model.trainable_variables)
    step = step_of(model, optimizer)
    batch = {name: tf.constant(value) for name, value in google_batch(folder).items()}
    googles = facts(folder, "info.json")["finetune"]["onehot"]
    for i in range(5):
        metrics = {name: float(value) for name, value in step(batch).items()}
        assert metrics["loss"] == pytest.approx(googles["loss"][i], abs=TRAJECTORY)
        norm = googles["global_norm_of_dense_grads"][i]
        assert metrics["gradient_norm"] == pytest.approx(norm, rel=1e-4)
        assert metrics["learning_rate"] == pytest.approx(googles["learning_rate"][i], rel=1e-6)
    expected = arrays(folder, "finetune_variables_step5_onehot.npz")
    variables = google_variables(model)
    assert set(variables) == set(expected)
    for name, variable in variables.items():
        np.testing.assert_allclose(
            variable.numpy(), expected[name], atol=TRAJECTORY, rtol=0, err_msg=name
        )
