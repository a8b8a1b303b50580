"""Measures the bits per character of a model with some vocabulary.

Shapes: B batch, T pieces of a row, P predictions.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.vocabularies.text import masked_characters, row
from bert_common.progress import with_progress
from bert_tf import BertModel, PretrainingModel, load_google_checkpoint
from bert_tf.training.evaluation import EvaluationStep
from bert_tf.training.xla import choose_compilation


class Bits(NamedTuple):
    """Bits per character of the masked spans."""

    at_once: float
    in_turn: float


def measure_bits(loss_of, examples, cuts, limit):
    """Computes the `Bits` of examples, all pieces at once and one after another.

    `loss_of` takes a list of `text.row`s and returns the sum of -ln p over their predictions.
    """
    most = [  # pieces in a masked span
        max((len(cuts.pieces(example.eojeols, span)) for span in example.masked), default=0)
        for example in examples
    ]
    at_once = loss_of([row(example, cuts, limit) for example in examples])
    in_turn = loss_of(
        [
            row(example, cuts, limit, asked=k)
            for k in range(max(most))
            for example, pieces in zip(examples, most, strict=True)
            if pieces > k
        ]
    )
    return Bits(*(loss / math.log(2) / masked_characters(examples) for loss in (at_once, in_turn)))


def frequency_bits(counts, symbols, kinds):
    """The bits that symbols cost by their frequencies in the Counter `counts`.

    Each count of the `kinds` of symbols is raised by one, so that none is impossible.
    """
    total = counts.total() + kinds
    return sum(math.log2(total / (counts[symbol] + 1)) for symbol in symbols)


def checkpoint_loss(config, checkpoint, batch_size):
    """The `loss_of` of a pre-trained model, computed by the project's evaluation step."""
    model = PretrainingModel(BertModel(config))
    load_google_checkpoint(model, str(checkpoint))
    step = EvaluationStep(
        model, tf.distribute.get_strategy(), choose_compilation("auto", "float32")
    )

    def loss_of(rows):
        total = 0.0
        starts = range(0, len(rows), batch_size)
        for start in with_progress(starts, "held-out text", "batches"):
            part = rows[start : start + batch_size]
            missing = batch_size - len(part)  # batches have one shape: filled up with weight 0
            filler = {**part[0], "masked_lm_weights": bytes(len(part[0]["masked_lm_weights"]))}
            batch = stack([*part, *[filler] * missing])
            total += float(step(batch)["masked_lm_loss"])
        return total

    return loss_of


def stack(rows):
    """Stacks rows into a batch: a dict of [B, T] and [B, P]."""
    kinds = {name: np.int32 for name in rows[0]} | {"masked_lm_weights": np.float32}
    return {
        name: np.array([list(features[name]) for features in rows], kind)
        for name, kind in kinds.items()
    }
