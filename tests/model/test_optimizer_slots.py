"""An optimizer with other slots than Adam's trains, is saved, and continues."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert_common.errors import InputError
from bert_tf import load_google_checkpoint
from bert_tf.checkpoint import google_variables
from bert_tf.memory_estimate import WEIGHT_BYTES, count_weights, estimate_bytes
from bert_tf.optimization import OPTIMIZERS, DecayOptimizer, Slot
from bert_tf.training.state import TrainingState, restore, save
from tests.support.tiny_models import (
    ONE_LAYER,
    assert_close,
    random_batch,
    split_batch,
    step_of,
    tiny_model,
    trained_variables,
    training_config,
    two_devices,
)

RATE, DECAY, INITIAL = 1e-2, 0.9, 0.5


class Momentum(DecayOptimizer):
    """Gradient descent with momentum: one slot, whose initial value is not zero."""

    slots = {"momentum": Slot("momentum", initial=INITIAL)}

    def updated(self, weight, slots, gradient, learning_rate, decayed, step):
        (momentum,) = slots
        momentum = DECAY * momentum + ops.cast(gradient, weight.dtype)
        update = momentum + self.weight_decay_rate * weight if decayed else momentum
        return weight - ops.cast(learning_rate, weight.dtype) * update, (momentum,)


def make(strategy):
    """A training state at step 0, and the function that updates it by one batch."""
    keras.utils.set_random_seed(3)
    with strategy.scope():
        model = tiny_model(**ONE_LAYER)
        optimizer = Momentum(RATE)
        optimizer.build(model.trainable_variables)
    state = TrainingState(model, optimizer)
    step = step_of(model, optimizer, strategy, xla_update=True)

    def update():
        step(split_batch(random_batch(state.step), strategy))
        state.step += 1

    return state, update


def values_of(state):
    """Weights and momenta by their names in a checkpoint."""
    return {name: v.numpy() for name, v in trained_variables(state).items()}


@pytest.mark.slow
def test_trains_saves_and_continues(tmp_path):
    strategy, config = two_devices(), training_config(tmp_path)
    state, update = make(strategy)
    before = values_of(state)
    update()
    after = values_of(state)
    expected = {}
    for name, variable in google_variables(state.model).items():
        momentum = after[f"{name}/momentum"]
        # The key bias has a gradient of zero.
        assert name.endswith("key/bias") == np.allclose(momentum, DECAY * INITIAL, rtol=1e-6), name
        decay = 0.01 * before[name] if state.optimizer.is_decayed(variable) else 0.0
        expected[name] = before[name] - RATE * (momentum + decay)
    assert_close({name: after[name] for name in expected}, expected, 1e-5, floor=1e-2)
    save(state, config)
    names = {name for name, _ in tf.train.list_variables(str(tmp_path / "model.ckpt-1"))}
    assert names == {*after, "global_step", "skipped_steps", "evaluated_step"}

    resumed, update_resumed = make(strategy)
    assert "resuming from" in restore(resumed, str(tmp_path))
    assert resumed.step == 1
    update()
    update_resumed()
    np.testing.assert_equal(values_of(resumed), values_of(state))


def test_its_slots_are_no_part_of_the_model(tmp_path, monkeypatch):
    state, _ = make(tf.distribute.get_strategy())
    save(state, training_config(tmp_path))
    prefix = str(tmp_path / "model.ckpt-0")
    with pytest.raises(InputError, match="momentum .* not part of the model"):
        load_google_checkpoint(state.model, prefix)
    monkeypatch.setitem(OPTIMIZERS, "momentum", Momentum)
    report = load_google_checkpoint(state.model, prefix)
    assert sum(name.endswith("/momentum") for name in report.ignored) == len(report.loaded)


def test_one_slot_takes_less_memory():
    config, optimizers = tiny_model(**ONE_LAYER).config, (OPTIMIZERS["adamw"], Momentum)
    two, one = (estimate_bytes(config, 8, 16, 4, slots=len(o.slots)) for o in optimizers)
    assert two - one == WEIGHT_BYTES * count_weights(config)
