"""Keeps the state of a training with JAX in one file.

A state is a dict of NumPy arrays: "weights/NAME" and "slots/NAME/SUFFIX" for each of Google's
names, "iterations" (the number of updates), "skipped" (how many of them changed no weight), and
"curves/METRIC" with a number per update with JAX.
"""

import numpy as np

from bert_common.atomic_write import atomic_write

STATE_FILE = "state.npz"


def read_state(path):
    """Reads the state in a file."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def write_arrays(path, arrays):
    """Writes arrays, name -> array, to a .npz file atomically."""
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def learning_rate(schedule, step):
    """Returns the learning rate after `step` updates, in float32 as `WarmupPolynomialDecay` does.

    Args:
        schedule: the schedule's `get_config`.
        step: the number of updates so far.
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
