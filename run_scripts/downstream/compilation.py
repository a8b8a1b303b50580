"""Decides how much of a fine-tuning job is worth compiling."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.input.length_buckets import WINDOW, compilation_cost_in_positions
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import UNSORTED_WINDOWS, choose_boundaries
from run_scripts.downstream.job import DownstreamJob

# The approximate share of a step's time that XLA saves.
XLA_GAIN = 0.2


def compilation_cost(
    job: DownstreamJob[Any, Any], task: DownstreamTask, split: str, counts: Mapping[str, int]
) -> float:
    """Returns the cost of compiling in positions per batch, spread over the batches of a split.

    `counts` has the number of examples of each split.
    """
    values = job.flags
    steps = _updates(values, counts) if values.do_train else 0
    if split == "train" and values.do_train:
        batches, size = steps, values.train_batch_size
    else:
        size = values.eval_batch_size if job.evaluates else values.predict_batch_size
        evaluations = 1
        if values.eval_every_steps:
            evaluations += int(steps) // values.eval_every_steps
        batches = evaluations * math.ceil(counts[split] / size)
    rows = size * task.rows  # one example of multiple choice is several rows
    device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return compilation_cost_in_positions(job.config.hidden_size, rows, device) / max(1, batches)


def _updates(values, counts):
    """Returns the approximate number of updates in the run."""
    epoch = counts["train"] / values.train_batch_size
    return values.train_step or epoch * values.num_train_epochs


def choose_split_boundaries(
    job: DownstreamJob[Any, Any],
    task: DownstreamTask,
    split: str,
    lengths: np.ndarray,
    counts: Mapping[str, int],
) -> tuple[int, ...]:
    """Returns the lengths that the batches of a split are cut to, as many as pay off.

    A training that ends before its batches are sorted has one. `lengths` are the examples' lengths
    in tokens.
    """
    values, cost = job.flags, compilation_cost(job, task, split, counts)
    trained = split == "train" and values.do_train
    if trained and _updates(values, counts) <= UNSORTED_WINDOWS * WINDOW:
        cost = values.max_seq_length  # more than a second length can save
    return choose_boundaries(lengths, values.max_seq_length, cost)


def skip_costly_compilation(
    job: DownstreamJob[Any, Any], task: DownstreamTask, counts: Mapping[str, int]
) -> str:
    """Turns off XLA, and on a CPU TensorFlow's graph optimizer, if the job is too short for them.

    `counts` is empty if a model is only exported. Returns the value of --xla, or "off" instead of
    "auto" for a short job.
    """
    values = job.flags
    if not counts:
        return values.xla
    split = "train" if values.do_train else max(counts, key=lambda name: counts[name])
    cost = compilation_cost(job, task, split, counts)
    if values.xla == "on" or cost <= XLA_GAIN * values.max_seq_length:
        return values.xla
    if not tf.config.list_physical_devices("GPU"):
        # The optimizer takes about a second for a step's graph and hardly speeds up a CPU.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    return "off"
