"""Aligns pieces of texts with the units that are tagged, as `finetuning.ner.labels` in Python.

Shapes: B texts, P pieces of all texts, U units of all texts.
"""

from typing import NamedTuple

import tensorflow as tf

from finetuning.serving.characters import Characters
from tokenization.tf_graph import tables
from tokenization.tf_graph.tables import Table

SPACE = ord(" ")


class Units(NamedTuple):
    """The units of all texts, in order: characters, or words."""

    starts: tf.Tensor  # int64 [U]: the first character of each in its text
    ends: tf.Tensor  # int64 [U]
    splits: tf.Tensor  # int64 [B + 1]: the row splits of the units of each text
    text_starts: tf.Tensor  # int64 [U]: where its text begins among the characters of all texts


class Alignment(NamedTuple):
    """Which pieces represent which units: a unit belongs to the first that shares a character."""

    owners: tf.Tensor  # int64 [U]: the piece that a unit belongs to; -1 for none
    # int64 [P]: the first unit that belongs to a piece; if none does, the first that shares a
    # character with it, or -1.
    units: tf.Tensor
    begins: tf.Tensor  # bool [P]: whether that unit belongs to it


def find_units(characters: Characters, by_character: bool) -> Units:
    """The units of texts: every character but " ", or words, which white space separates."""
    rows = characters.rows
    if by_character:
        inside = rows.values != SPACE
    else:
        inside = ~Table(tables.having(str.isspace))(rows.values)
    count = tf.size(inside, tf.int64)
    begins_text = tf.scatter_nd(
        rows.row_splits[:, tf.newaxis], tf.ones_like(rows.row_splits), count[tf.newaxis] + 1
    )
    before = tf.concat([[False], inside[:-1]], axis=0)[:count]
    after = tf.concat([inside[1:], [False]], axis=0)[:count]
    first, last = inside, inside
    if not by_character:
        first &= ~before | (begins_text[:-1] > 0)
        last &= ~after | (begins_text[1:] > 0)
    starts, ends = tf.where(first)[:, 0], tf.where(last)[:, 0] + 1  # among all characters
    splits = tf.searchsorted(starts, rows.row_splits, out_type=tf.int64)
    text_starts = tf.repeat(rows.row_starts(), splits[1:] - splits[:-1])
    return Units(starts - text_starts, ends - text_starts, splits, text_starts)


def align(units: Units, spans: tf.RaggedTensor, text_starts: tf.Tensor) -> Alignment:
    """Aligns units and pieces.

    Args:
        spans: first character and end of each piece, int32 RaggedTensor [B, (pieces), 2]; neither
            ever decreases in a text.
        text_starts: where each text begins among the characters of all texts, int64 [B].
    """
    offset = tf.gather(text_starts, spans.value_rowids())  # [P]
    begin = tf.cast(spans.values[:, 0], tf.int64) + offset
    end = tf.cast(spans.values[:, 1], tf.int64) + offset
    # The units that a piece touches follow one another: from the first that ends after the
    # piece's beginning to the last that begins before its end.
    low = tf.searchsorted(units.ends + units.text_starts, begin, "right", tf.int64)  # [P]
    high = tf.searchsorted(units.starts + units.text_starts, end, "left", tf.int64)
    high = tf.where(begin < end, tf.maximum(low, high), low)
    # Those that no earlier piece touches belong to it.
    before = tf.concat([[tf.constant(0, tf.int64)], high[:-1]], axis=0)[: tf.size(high)]
    owned = tf.minimum(tf.maximum(low, before), high)
    begins = owned < high
    touched = tf.where(low < high, low, -1)
    owners = tf.ragged.range(owned, high)  # [P, (units)]
    of_units = tf.tensor_scatter_nd_update(
        tf.fill([tf.size(units.starts)], tf.constant(-1, tf.int64)),
        owners.values[:, tf.newaxis],
        owners.value_rowids(),
    )
    return Alignment(of_units, tf.where(begins, owned, touched), begins)
