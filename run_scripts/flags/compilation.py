"""Decides how much a fine-tuning compiles, by the work ahead of it."""

import dataclasses
import math

import tensorflow as tf

from bert_tf.input.length_buckets import compiling_positions

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
    steps = 0
    if values.do_train:
        steps = values.train_step or counts["train"] / values.train_batch_size * (
            values.num_train_epochs
        )
    if split == "train" and values.do_train:
        batches, size = steps, values.train_batch_size
    else:
        size = values.eval_batch_size if values.do_eval else values.predict_batch_size
        often = 1 + int(steps) // values.eval_every_steps if values.eval_every_steps else 1
        batches = often * math.ceil(counts[split] / size)
    rows = size * getattr(task, "rows", 1)  # of multiple choice an example is several
    device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return compiling_positions(config.hidden_size, rows, device) / max(1, batches)


def without_xla_if_short(values, config, task, read):
    """The flags, with --xla=auto made off where compiling would take longer than it saves."""
    counts = {split: len(each) for split, each in read.items()}
    if not counts:  # only an export
        return values
    split = "train" if values.do_train else max(counts, key=counts.get)
    price = compiling_price(values, config, task, split, counts)
    if values.xla == "auto" and price > XLA_GAIN * values.max_seq_length:
        return dataclasses.replace(values, xla="off")
    return values
