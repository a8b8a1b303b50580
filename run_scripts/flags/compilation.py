"""Decides how much a fine-tuning compiles, by the work ahead of it."""

import dataclasses
import math

import tensorflow as tf

from bert_tf.input.length_buckets import WINDOW, compiling_positions
from finetuning.examples import UNSORTED_WINDOWS, choose_boundaries

# The share of a step's time that XLA saves, about.
XLA_GAIN = 0.2


def compiling_price(values, config, task, split, counts):
    """What compiling costs, shared out over the batches of a split, in positions of each.

    Args:
        values: `FinetuneFlags`.
        config: the model's configuration.
        task: what the model learns.
        split: a key of `counts`.
        counts: split -> how many examples it has.
    """
    steps = _updates(values, counts) if values.do_train else 0
    if split == "train" and values.do_train:
        batches, size = steps, values.train_batch_size
    else:
        size = values.eval_batch_size if values.do_eval else values.predict_batch_size
        often = 1 + int(steps) // values.eval_every_steps if values.eval_every_steps else 1
        batches = often * math.ceil(counts[split] / size)
    rows = size * task.rows
    device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return compiling_positions(config.hidden_size, rows, device) / max(1, batches)


def _updates(values, counts):
    """How many updates a training makes, about."""
    epoch = counts["train"] / values.train_batch_size
    return values.train_step or epoch * values.num_train_epochs


def lengths_of_batches(values, config, task, split, examples, counts):
    """The lengths that the batches of a split may have: as many as pay.

    A training that ends before its batches are sorted has one.

    Args:
        values: `FinetuneFlags`.
        config: the model's configuration.
        task: what the model learns.
        split: a key of `counts`.
        examples: the split's `Examples`.
        counts: split -> how many examples it has.
    """
    price = compiling_price(values, config, task, split, counts)
    trained = split == "train" and values.do_train
    if trained and _updates(values, counts) <= UNSORTED_WINDOWS * WINDOW:
        price = values.max_seq_length  # no length saves as much as that
    return choose_boundaries(examples.lengths, values.max_seq_length, price)


def compile_less_if_short(values, config, task, read):
    """Leaves out what would take longer than it saves: XLA, TensorFlow's optimizer of graphs.

    Returns:
        The flags, in a short job with --xla=auto made off.
    """
    counts = {split: len(each) for split, each in read.items()}
    if not counts:  # only an export
        return values
    split = "train" if values.do_train else max(counts, key=counts.get)
    price = compiling_price(values, config, task, split, counts)
    if values.xla == "on" or price <= XLA_GAIN * values.max_seq_length:
        return values
    if not tf.config.list_physical_devices("GPU"):
        # It takes about a second for a step's graph, and changes little in what a CPU computes.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    return dataclasses.replace(values, xla="off")
