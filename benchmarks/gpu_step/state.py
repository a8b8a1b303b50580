"""Keeps the state of a training under JAX in one file.

A state is a dict of NumPy arrays: "weights/NAME" and "slots/NAME/SUFFIX" for each of Google's
names, "iterations" (updates made), and "curves/METRIC" with a number for each update made here.
"""

import numpy as np

from bert_common.atomic_write import atomic_write

STATE_FILE = "state.npz"
BATCHES_FILE = "batches.npz"


def new_state(description, seed=0):
    """New weights as `bert_tf` draws them, zero slots, no updates.

    A truncated normal, cut at two standard deviations; layer norms begin with gamma 1, beta 0,
    biases with 0.

    Args:
        description: the content of program.json.
        seed: of the weights.
    """
    rng = np.random.default_rng(seed)
    deviation = description["config"]["initializer_range"]
    state = {}
    for row in description["programs"]["update"]["arguments"]:
        kind, shape = row["name"].split("/")[0], row["shape"]
        if kind == "slots":
            state[row["name"]] = np.zeros(shape, row["dtype"])
    for row in description["programs"]["gradients"]["arguments"]:
        if row["name"].startswith("weights/"):
            state[row["name"]] = _new_weight(rng, row, deviation)
    return {**state, "iterations": np.int64(0)}


def _new_weight(rng, row, deviation):
    last = row["name"].rsplit("/", 1)[1]
    if last in ("gamma", "beta", "bias", "output_bias"):
        return np.full(row["shape"], float(last == "gamma"), row["dtype"])
    values = rng.standard_normal(row["shape"], np.float32)
    while (outside := np.abs(values) > 2).any():
        values[outside] = rng.standard_normal(int(outside.sum()), np.float32)
    return (values * deviation).astype(row["dtype"])


def read_state(path):
    """The state in a file."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def write_arrays(path, arrays, compress=False):
    """Writes arrays to a file, whole or not at all.

    Args:
        path: ends in .npz.
        arrays: name -> array.
        compress: whether to deflate them.
    """
    # Not `atomic_write`: this folder is carried to machines without the project.
    with atomic_write(path) as file:
        (np.savez_compressed if compress else np.savez)(file, **arrays)


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
