"""The training step: dropout's rate, one device against two, weights without a gradient."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import make_optimizer, random_batch, split_batch, tiny_model, two_devices

from bert_tf.checkpoint import google_variables
from bert_tf.layers import Dropout
from bert_tf.pretraining import loss_sums
from bert_tf.step import EvaluationStep, TrainingStep

RATE = 0.3


class ProbedStep(TrainingStep):
    """A step that also returns what every dropout layer dropped, in the order of the calls."""

    def _forward_backward(self, *arguments):
        masks = []
        original = Dropout.call

        def recording(layer, inputs, training=False):
            outputs = original(layer, inputs, training=training)
            masks.append(tf.reshape(tf.cast(tf.equal(outputs, 0), tf.float32), [-1]))
            return outputs

        Dropout.call = recording
        try:
            sums, gradients = super()._forward_backward(*arguments)
        finally:
            Dropout.call = original
        self.count = len(masks)
        return {**sums, **{f"dropped_{i}": mask for i, mask in enumerate(masks)}}, gradients


@pytest.mark.parametrize("kind", ("bert", "albert"))
@pytest.mark.parametrize("xla", (True, False))
@pytest.mark.parametrize("policy", ("float32", "mixed_bfloat16"))
def test_share_of_dropped_units_is_the_rate(policy, xla, kind):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model = tiny_model(kind, dropout=RATE)
    finally:
        keras.config.set_dtype_policy(before)
    step = ProbedStep(
        model, make_optimizer("adamw", model), tf.distribute.get_strategy(), seed=1, xla=xla
    )
    steps = [step(tensors(random_batch(0, padding=False))) for _ in range(2)]
    # Embeddings, then attention probabilities, attention output, block output in each layer.
    assert step.count == 1 + 3 * 2
    first, second = (
        [result[f"dropped_{i}"].numpy() for i in range(step.count)] for result in steps
    )
    for mask in first + second:
        bound = 5 * np.sqrt(RATE * (1 - RATE) / mask.size)
        assert abs(mask.mean() - RATE) < bound < 0.1
    for a, b in zip(first, second, strict=True):
        assert not np.array_equal(a, b), "every step draws another mask"
    # The two layers' masks, which ALBERT's shared block draws in two calls.
    for a, b in zip(first[1:4], first[4:7], strict=True):
        assert not np.array_equal(a, b), "every layer draws another mask"


def test_replicas_drop_different_units():
    strategy = two_devices()
    with strategy.scope():
        model = tiny_model(dropout=RATE)
        optimizer = make_optimizer("adamw", model)

    class KeepReplicas(ProbedStep):
        def _run(self, batch, stop):
            return strategy.run(self._replica_step, args=(batch, stop))

        def _forward_backward(self, *arguments):
            sums, gradients = super()._forward_backward(*arguments)
            return {"mask": sums["dropped_0"], **sums}, gradients

    half = random_batch(0, size=4, padding=False)
    same_twice = {k: np.concatenate([v, v]) for k, v in half.items()}
    step = KeepReplicas(model, optimizer, strategy)
    # The masks are added up over the replicas: 1 where one of two dropped.
    masks = strategy.experimental_local_results(step(split_batch(same_twice, strategy))["mask"])[0]
    assert (masks.numpy() == 1).mean() == pytest.approx(2 * RATE * (1 - RATE), abs=0.1)


def tensors(batch):
    """A batch for one device."""
    return {name: tf.constant(value) for name, value in batch.items()}


STEPS = 20
CLOSE = 1e-9


def run_steps(strategy, kind, optimizer_name, step_class=TrainingStep, steps=STEPS, xla=True):
    """Losses and gradient norms of every step, then moments and weights by Google's name."""
    keras.utils.set_random_seed(3)
    with strategy.scope():
        model = tiny_model(kind)
        optimizer = make_optimizer(optimizer_name, model)
    step = step_class(model, optimizer, strategy, xla=xla)
    numbers = []
    for i in range(steps):
        metrics = step(split_batch(random_batch(i), strategy))
        # The norm too: clipping hides how long a gradient was.
        numbers.append([float(metrics["loss"]), float(metrics["gradient_norm"])])
    state = {}
    for name, variable in google_variables(model).items():
        first, second = optimizer.moments(variable)
        state |= {name: variable.numpy(), f"{name}/m": first.numpy(), f"{name}/v": second.numpy()}
    return numbers, state


def assert_same_training(one, two):
    """Losses, norms, weights, moments: equal in float64 up to rounding."""
    np.testing.assert_allclose(one[0], two[0], atol=CLOSE, rtol=0)
    for name, value in one[1].items():
        # Relative to the tensor's largest entry, since second moments are small numbers; the
        # floor is for the key bias, whose gradient is zero up to rounding.
        bound = CLOSE * max(np.abs(value).max(), 1e-4)
        np.testing.assert_allclose(two[1][name], value, atol=bound, rtol=0, err_msg=name)


CASES = (("bert", "adamw"), ("albert", "lamb"))


@pytest.mark.parametrize("kind, optimizer_name", CASES)
def test_two_devices_train_as_one(float64, kind, optimizer_name):
    one = run_steps(tf.distribute.get_strategy(), kind, optimizer_name)
    two = run_steps(two_devices(), kind, optimizer_name)
    assert len(one[0]) == STEPS
    assert_same_training(one, two)


class DoubledGradient(TrainingStep):
    """A wrong step: the gradient is twice what it should be."""

    def _forward_backward(self, *arguments):
        sums, gradients = super()._forward_backward(*arguments)
        return sums, [2 * g for g in gradients]


class ReducedTwice(TrainingStep):
    """A wrong step: the optimizer adds the reduced gradients up once more."""

    def _apply_gradients(self, weights, firsts, seconds, gradients, *rest, **decayed):
        twice = [gradient * self.strategy.num_replicas_in_sync for gradient in gradients]
        super()._apply_gradients(weights, firsts, seconds, twice, *rest, **decayed)


@pytest.mark.parametrize("wrong", (DoubledGradient, ReducedTwice))
@pytest.mark.parametrize("kind, optimizer_name", CASES)
def test_the_comparison_notices_a_wrong_step(float64, kind, optimizer_name, wrong):
    one = run_steps(tf.distribute.get_strategy(), kind, optimizer_name, steps=3, xla=False)
    two = run_steps(two_devices(), kind, optimizer_name, wrong, steps=3, xla=False)
    with pytest.raises(AssertionError):
        assert_same_training(one, two)


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_weights_without_a_gradient_stay(kind):
    """Without sentence labels the pooler and its head are neither updated nor decayed."""
    model = tiny_model(kind)
    before = {name: v.numpy() for name, v in google_variables(model).items()}
    step = TrainingStep(model, make_optimizer("adamw", model), tf.distribute.get_strategy())
    for i in range(5):
        batch = random_batch(i)
        del batch["next_sentence_labels"], batch["next_sentence_weights"]
        metrics = step(tensors(batch))
    assert not any(name.startswith("next_sentence") for name in metrics)
    for name, variable in google_variables(model).items():
        untouched = name.startswith(("bert/pooler", "cls/seq_relationship"))
        assert np.array_equal(before[name], variable.numpy()) == untouched, name


def test_evaluation_does_not_depend_on_the_split():
    strategy = two_devices()
    with strategy.scope():
        model = tiny_model(dropout=RATE)
    batch = random_batch(0)
    two = EvaluationStep(model, strategy)(split_batch(batch, strategy))
    plain = loss_sums(model(batch, training=False), batch)
    for name, value in plain.items():
        assert float(two[name]) == pytest.approx(float(value), rel=1e-5)
