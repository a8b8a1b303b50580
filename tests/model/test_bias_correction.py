"""With bias correction the optimizers equal PyTorch's AdamW and Keras's LAMB."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import OPTIMIZERS, AdamWeightDecay
from tests.support.crosses import slow
from tests.support.paths import TEST_DATA
from tests.support.tiny_models import (
    ONE_LAYER,
    assert_close,
    first_state,
    random_batch,
    split_batch,
    step_of,
    strategy_of,
    tensors,
    tiny_model,
)

RATE, UPDATES = 1e-2, 20


def dense_layer():
    layer = keras.layers.Dense(3)
    layer.build((None, 4))
    layer.bias.assign(np.full(3, 0.5))
    return layer


def test_adamw_equals_torch(float64):
    """Stored by tests/data/adamw/write_updates.py, of a decayed kernel and a bias that is not."""
    stored, layer = np.load(TEST_DATA / "adamw" / "updates.npz"), dense_layer()
    optimizer = AdamWeightDecay(RATE, bias_correction=True)
    optimizer.build(layer.trainable_variables)
    layer.set_weights([stored["kernel"][0], stored["bias"][0]])
    for step in range(UPDATES):
        gradients = [tf.constant(stored[f"{name}_gradients"][step]) for name in ("kernel", "bias")]
        optimizer.apply(gradients, layer.trainable_variables)
        for name in ("kernel", "bias"):
            found = getattr(layer, name).numpy()
            np.testing.assert_allclose(found, stored[name][step + 1], rtol=0, atol=1e-14)


def test_lamb_equals_keras(float64):
    """Without decay, which Keras keeps out of the norm."""
    layer, other, rng = dense_layer(), dense_layer(), np.random.default_rng(0)
    other.set_weights(layer.get_weights())
    ours = OPTIMIZERS["lamb"](RATE, weight_decay_rate=0.0, bias_correction=True)
    theirs = keras.optimizers.Lamb(RATE, epsilon=1e-6)
    for _ in range(UPDATES):
        gradient = tf.constant(rng.normal(size=(4, 3)))
        for each, kernel in ((ours, layer.kernel), (theirs, other.kernel)):
            each.apply([gradient], [kernel])
    np.testing.assert_allclose(layer.kernel.numpy(), other.kernel.numpy(), rtol=1e-9)


@pytest.mark.parametrize("xla", (False, slow(True)))
def test_the_step_counts_updates(float64, xla):
    """Each update of a model follows from its moments and the number of the update."""
    keras.utils.set_random_seed(3)
    model = tiny_model(**ONE_LAYER)
    optimizer = AdamWeightDecay(RATE, bias_correction=True)
    optimizer.build(model.trainable_variables)
    step = step_of(model, optimizer, xla_update=xla)
    name = "pretraining/masked_lm/transform/kernel"
    (kernel,) = (v for v in model.trainable_variables if v.path == name)
    for number in (1, 2, 3):
        before = kernel.numpy()
        step(tensors(random_batch(number)))
        first, second = (slot.numpy() for slot in optimizer.slot_variables(kernel))
        mean, square = first / (1 - 0.9**number), second / (1 - 0.999**number)
        update = mean / (np.sqrt(square) + 1e-6) + 0.01 * before
        np.testing.assert_allclose(kernel.numpy(), before - RATE * update, rtol=1e-12)


@pytest.mark.parametrize("devices, xla", ((2, False), slow(1, True)))
def test_a_skipped_update_is_none(float64, devices, xla):
    """The moments hold none of it; PyTorch counts no update either that its GradScaler skips."""
    batches, states = [random_batch(number) for number in range(3)], []
    broken = random_batch(0)
    broken["masked_lm_weights"][-1, 0] = np.nan  # in the last replica's part
    for given in ([broken, *batches, broken, broken, *batches], [*batches, *batches]):
        keras.utils.set_random_seed(3)
        strategy = strategy_of(devices)
        with strategy.scope():
            optimizer = AdamWeightDecay(RATE, bias_correction=True)
            model = tiny_model(**ONE_LAYER)
            optimizer.build(model.trainable_variables)
        step = step_of(model, optimizer, strategy, xla_update=xla)
        skipped = sum(float(step(split_batch(batch, strategy))["skipped"]) for batch in given)
        assert skipped == optimizer.skipped.numpy() == len(given) - 6
        assert optimizer.iterations.numpy() == len(given)
        states.append(first_state(step))
    assert_close(*states, 1e-9, floor=1e-4)


def test_keras_counts_and_saves_what_it_did():
    """`apply` counts no skipped update either, and Keras's older files of an optimizer fit."""
    kernels = []
    for skipped in (0, 5):
        kernel = keras.Variable(np.ones([3, 2]), name="kernel")
        saved = keras.optimizers.serialize(AdamWeightDecay(RATE, bias_correction=True))
        optimizer = keras.optimizers.deserialize(saved)
        assert isinstance(optimizer, AdamWeightDecay) and optimizer.bias_correction
        optimizer.build([kernel])
        assert len(optimizer.variables) == 4  # updates, learning rate, two moments
        optimizer.skipped.assign(skipped)
        optimizer.iterations.assign(skipped)
        optimizer.apply([tf.ones([3, 2])], [kernel])
        kernels.append(kernel.numpy())
    np.testing.assert_array_equal(*kernels)
