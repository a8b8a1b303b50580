"""Classification and regression heads: equal to what Google's code computed."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import load_google_checkpoint
from bert_tf.objective import total_loss
from bert_tf.optimization import AdamWeightDecay, WarmupPolynomialDecay
from bert_tf.training.evaluation import EvaluationStep
from finetuning.classification.head import SequenceClassifier, regression_losses
from finetuning.heads import classification_losses
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
    check_gradients(model, lambda: loss_of(model, batch), folder)


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
