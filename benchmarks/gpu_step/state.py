"""Keeps the state of a training under JAX in one file.

A state is a dict of NumPy arrays: "weights/NAME" and "slots/NAME/SUFFIX" for each of Google's
names, "iterations" (updates made), and "curves/METRIC" with a number for each update made here.
"""

import numpy as np

from bert_common.atomic_write import atomic_write

STATE_FILE = "state.npz"


def read_state(path):
    """The state in a file."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def write_arrays(path, arrays):
    """Writes arrays, name -> array, to a .npz file, whole or not at all."""
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def learning_rate(schedule, step):
    """The rate of the update that follows `step` updates, in float32 as `WarmupPolynomialDecay`.

    Args:
        schedule: its `get_config`.
        step: updates made.
    """
    one, step = np.float32(1), np.float32(step)
    initial, total = (
        np.float32(schedule[name]) for name in ("initial_learning_rate", "num_train_steps")
    )
    rate = initial * (one - np.minimum(step, total) / total) ** np.float32(schedule["power"])
    warm = step - np.float32(schedule["start_warmup_step"])
    if warm < schedule["num_warmup_steps"]:
        rate = np.maximum(initial * warm / np.float32(schedule["num_warmup_steps"]), 0)
    return np.float32(rate)
