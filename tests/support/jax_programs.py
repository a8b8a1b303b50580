"""Tiny exported training steps, and this project's own step beside them."""

import keras
import numpy as np
import tensorflow as tf
from gpu_step.export import export_step
from tiny_models import make_optimizer, random_batch, step_of, tiny_model

from bert_tf.training.state import TrainingState
from bert_tf.training.step import StepConfig

OPTIMIZERS = {"bert": "adamw", "albert": "lamb"}
SEED = 7
TRAIN_STEPS = 20  # after which the learning rate is 0


def tiny_state(kind):
    """A tiny model with dropout and its optimizer, the same every time."""
    keras.utils.set_random_seed(3)
    model = tiny_model(kind, dropout=0.1)
    return TrainingState(model, make_optimizer(OPTIMIZERS[kind], model, TRAIN_STEPS))


def export_tiny(folder, kind, **config):
    """Exports the step of `tiny_state` for the batches of `random_batch`; returns the state.

    `config` are fields of `StepConfig`.
    """
    state = tiny_state(kind)
    details = {
        "model": kind,
        "precision": "float32",
        "schedule": state.optimizer._learning_rate.get_config(),
    }
    config = StepConfig(seed=SEED, **config)
    export_step(str(folder), state, config, random_batch(0), details)
    return state


def own_step(state, **config):
    """This project's step of a state, compiled by XLA."""
    return step_of(state.model, state.optimizer, xla=True, xla_update=True, seed=SEED, **config)


def save_batches(path, count):
    """Writes a file of batches; returns them as a list."""
    batches = [random_batch(i) for i in range(count)]
    arrays = {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}
    np.savez(path, first_step=np.int64(0), **arrays)
    return batches


def gradients_at(step, batch, iterations, replica):
    """Loss sums and gradients by path, as `forward_backward` returns them."""
    objective = step.model.objective
    batch = {name: tf.constant(value) for name, value in batch.items()}
    return step.forward_backward(
        [v.value for v in step.weights],
        tf.constant(iterations, tf.int64),
        tf.constant(replica),
        batch,
        objective.denominators(objective.weight_sums(batch)),
        tf.constant(1.0, step.dtype),
    )
