"""Provides the contenders' shared hyper-parameters, configuration, batch and timing."""

import time

from benchmarks.common import random_batch
from model_formats.encoders import ENCODERS

RATE = 1e-4
DECAY = 0.01
CLIP = 1.0


def task_config(task):
    """Returns the configuration of a task's model, and its batch as arrays."""
    config = ENCODERS[task["model"]].config(**task["config"])
    return config, random_batch(config, task["batch"], task["length"], task["predictions"])


def policy(task):
    """Returns the name of the Keras policy for a task's precision."""
    return "mixed_bfloat16" if task["precision"] == "bfloat16" else "float32"


def timed(step, wait):
    """Returns a function that times `steps` calls of `step`; `wait` gets the last result."""

    def run(steps):
        start = time.perf_counter()
        for _ in range(steps):
            result = step()
        wait(result)  # an accelerator may still be computing
        return (time.perf_counter() - start) / steps

    return run
