"""Provides the contenders' shared flags, hyper-parameters, configuration, batch and timing."""

import dataclasses
import time

import numpy as np

from benchmarks.common import flag, some_of
from model_formats.encoders import ENCODERS

RATE = 1e-4
DECAY = 0.01
CLIP = 1.0
DROPOUT = 0.1  # of BERT, and of ALBERT version 1
VOCAB_SIZES = {"bert": 30522, "albert": 30000}  # of the published English models

# The flags of model and precision.
MODEL_FLAGS = {
    "model": flag("bert", choices=VOCAB_SIZES),
    "config": flag(None, "its JSON file; without it the base size"),
    "precision": some_of(("float32", "bfloat16"), ("float32", "bfloat16")),
}


def read_config(model, path=None, size="base"):
    """Returns the configuration of a file, or of a published size, with `DROPOUT`."""
    kind = ENCODERS[model].config
    if path:
        config = kind.from_json_file(path)
    else:
        config = kind.from_preset(size, vocab_size=VOCAB_SIZES[model])
    return dataclasses.replace(
        config, hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=DROPOUT
    )


def task_config(task):
    """Returns the configuration of a task's model, and its batch as arrays."""
    config = ENCODERS[task["model"]].config(**task["config"])
    return config, random_batch(config, task["batch"], task["length"], task["predictions"])


def random_batch(config, batch, length, predictions):
    """Returns full rows of random ids; a row's masked positions are distinct and ascending."""
    rng = np.random.default_rng(0)
    positions = np.argsort(rng.random((batch, length)), axis=1)[:, :predictions]
    return {
        "input_ids": rng.integers(1, config.vocab_size, (batch, length), np.int32),
        "input_mask": np.ones((batch, length), np.int32),
        "segment_ids": rng.integers(0, 2, (batch, length), np.int32),
        "masked_lm_positions": np.sort(positions, axis=1).astype(np.int32),
        "masked_lm_ids": rng.integers(1, config.vocab_size, (batch, predictions), np.int32),
        "masked_lm_weights": np.ones((batch, predictions), np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1), np.int32),
        "next_sentence_weights": np.ones(batch, np.float32),
    }


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
