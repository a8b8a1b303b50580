"""Turns logits of tokens into entities in a graph, as `finetuning.ner` does in Python.

Shapes: B texts, P tokens (pieces) of all texts, U units of all texts, S tokens of a text that begin
a unit, E entities of all texts, C classes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from finetuning.serving.characters import Characters
from tokenization.tf_graph import tables
from tokenization.tf_graph.tables import Table

OUTSIDE, BEGIN, INSIDE = range(3)


class Units(NamedTuple):
    """The units of all texts, in order: characters, or words."""

    starts: tf.Tensor  # int64 [U]: the first character of each unit in its text
    ends: tf.Tensor  # int64 [U]
    splits: tf.Tensor  # int64 [B + 1]: the row splits of the units of each text
    text_starts: tf.Tensor  # int64 [U]: where a unit's text begins among all texts' characters


class Alignment(NamedTuple):
    """A map of units to tokens; a unit belongs to the first token that shares a character."""

    owners: tf.Tensor  # int64 [U]: the token that a unit belongs to; -1 for none
    # int64 [P]: the first unit that belongs to a token; if none does, the first unit that shares a
    # character with it, or -1.
    units: tf.Tensor
    begins: tf.Tensor  # bool [P]: whether that unit belongs to it


class Tags:
    """Stores the tags "B-X", "I-X" or "O" of C classes as numbers: place in an entity, and kind."""

    def __init__(self, names: Sequence[str]) -> None:
        kinds = sorted({name[2:] for name in names})
        self.outside = names.index("O")
        self.kinds = tf.constant(kinds)
        self.kind_of = tf.constant([kinds.index(name[2:]) for name in names], tf.int32)  # [C]
        self.place_of = tf.constant(["OBI".index(name[0]) for name in names], tf.int32)  # [C]
        inside = np.array([name[0] == "I" for name in names])
        suffixes = np.array([name[1:] for name in names])
        # As `finetuning.ner.labels.decode`: I-X follows only B-X or I-X.
        self.first = np.where(inside, -np.inf, 0.0)  # [C]
        self.transitions = np.where(inside & (suffixes[:, None] != suffixes), -np.inf, 0.0)


class Entities(NamedTuple):
    """The entities of all texts, in order."""

    starts: tf.Tensor  # int64 [E]: the first character in the text
    ends: tf.Tensor  # int64 [E]
    kinds: tf.Tensor  # string [E]
    probabilities: tf.Tensor  # float64 [E]: the mean of its tags' probabilities
    splits: tf.Tensor  # int64 [B + 1]: the row splits of the entities of each text


def find_units(characters: Characters, by_character: bool) -> Units:
    """Returns the units of texts: all characters but " ", or words separated by white space."""
    rows = characters.rows
    if by_character:
        inside = rows.values != ord(" ")
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
    """Aligns units and tokens.

    Args:
        spans: first character and end of each token, int32 RaggedTensor [B, (tokens), 2]; neither
            ever decreases in a text.
        text_starts: where each text begins among the characters of all texts, int64 [B].
    """
    offset = tf.gather(text_starts, spans.value_rowids())  # [P]
    begin = tf.cast(spans.values[:, 0], tf.int64) + offset
    end = tf.cast(spans.values[:, 1], tf.int64) + offset
    # The units that a token touches are consecutive, from the first that ends after the token's
    # beginning to the last that begins before its end.
    low = tf.searchsorted(units.ends + units.text_starts, begin, "right", tf.int64)  # [P]
    high = tf.searchsorted(units.starts + units.text_starts, end, "left", tf.int64)
    has_characters = begin < end  # word-end markers have none, and touch no unit
    high = tf.where(has_characters, tf.maximum(low, high), low)
    # The units that no earlier token touches belong to the token.
    reached = tf.concat([[0], tf.boolean_mask(high, has_characters)], axis=0)
    before = tf.gather(reached, tf.cumsum(tf.cast(has_characters, tf.int64), exclusive=True))  # [P]
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


def find_entities(
    logits: tf.Tensor, splits: tf.Tensor, units: Units, alignment: Alignment, tags: Tags
) -> Entities:
    """Returns the entities of texts from all tokens' logits [P, C], row splits int64 [B + 1]."""
    begins = tf.where(alignment.begins)[:, 0]  # tokens to which no unit belongs are ignored
    begin_splits = tf.searchsorted(begins, splits, out_type=tf.int64)
    rows = tf.RaggedTensor.from_row_splits(tf.gather(logits, begins), begin_splits, validate=False)
    classes = tf.fill([tf.shape(logits)[0]], tags.outside)  # [P]
    classes = tf.tensor_scatter_nd_update(classes, begins[:, tf.newaxis], decode(rows, tags).values)
    shares = tf.nn.softmax(logits)
    shares = tf.gather(shares, classes, batch_dims=1)  # [P]
    place, kind, share, owned = _unit_tags(classes, shares, units, alignment, tags)
    text = tf.repeat(tf.range(tf.size(units.splits) - 1), units.splits[1:] - units.splits[:-1])
    same = (kind[1:] == kind[:-1]) & (text[1:] == text[:-1]) & (place[:-1] != OUTSIDE)
    continues = (place == INSIDE) & tf.concat([[False], same], axis=0)[: tf.size(place)]
    heads = tf.where(~continues)[:, 0]  # [groups]
    ends = tf.concat([heads[1:], tf.size(place, tf.int64)[tf.newaxis]], axis=0)[: tf.size(heads)]
    # An I- that continues no entity is not an entity.
    is_entity = tf.gather(place, heads) == BEGIN
    heads, ends = tf.boolean_mask(heads, is_entity), tf.boolean_mask(ends, is_entity)
    units_of = tf.ragged.range(heads, ends)  # [E, (units)]
    return Entities(
        tf.gather(units.starts, heads),
        tf.gather(units.ends, ends - 1),
        tf.gather(tags.kinds, tf.gather(kind, heads)),
        # Units without a token do not count.
        tf.math.divide_no_nan(
            tf.reduce_sum(units_of.with_values(tf.gather(share * owned, units_of.values)), axis=1),
            tf.reduce_sum(units_of.with_values(tf.gather(owned, units_of.values)), axis=1),
        ),
        tf.searchsorted(heads, units.splits, out_type=tf.int64),
    )


def _unit_tags(classes, shares, units, alignment, tags):
    """Returns place, kind and probability of each unit's tag, and 1.0 if it has a token, each [U].

    As `finetuning.ner.labels.unit_tags` and `finetuning.ner.task.predict_tags`.
    """
    count = tf.size(alignment.owners, tf.int64)
    owned = alignment.owners >= 0
    piece = tf.maximum(alignment.owners, 0)
    # Without tokens there would be nothing to gather from.
    of_unit = tf.gather(tf.concat([classes, [tags.outside]], axis=0), piece)
    place, kind = tf.gather(tags.place_of, of_unit), tf.gather(tags.kind_of, of_unit)
    first = tf.gather(tf.concat([alignment.units, [-1]], axis=0), piece) == tf.range(count)
    place = tf.where((place == BEGIN) & ~first, INSIDE, place)
    # A unit without a token joins the entity that the next unit with a token continues.
    known = tf.where(owned)[:, 0]
    following = tf.searchsorted(known, tf.range(count), out_type=tf.int64)
    following = tf.gather(tf.concat([known, [-1]], axis=0), following)  # [U]; -1: none
    text = tf.repeat(tf.range(tf.size(units.splits) - 1), units.splits[1:] - units.splits[:-1])
    at = tf.maximum(following, 0)
    inside = (following >= 0) & (tf.gather(text, at) == text) & (tf.gather(place, at) == INSIDE)
    place = tf.where(owned, place, tf.where(inside, INSIDE, OUTSIDE))
    kind = tf.where(owned | ~inside, kind, tf.gather(kind, at))
    shares = tf.cast(tf.concat([shares, [1.0]], axis=0), tf.float64)
    return place, kind, tf.gather(shares, piece), tf.cast(owned, tf.float64)


def decode(scores: tf.RaggedTensor, tags: Tags) -> tf.RaggedTensor:
    """Finds the valid sequences of tags with the highest scores, as `finetuning.ner.labels.decode`.

    Takes a float RaggedTensor [B, (S), C]; returns the classes, int32 RaggedTensor [B, (S)].
    """
    lengths = scores.row_lengths()  # [B]
    # At least 1: without tokens, as if all texts are blank, the arrays would have no shape.
    steps = tf.cast(tf.reduce_max(tf.concat([lengths, [1]], axis=0)), tf.int32)
    padded = tf.cast(scores.to_tensor(0.0), tf.float64)  # [B, S, C]
    padded = tf.pad(padded, [[0, 0], [0, 1], [0, 0]])  # read if S is 0
    batch, classes = tf.shape(padded)[0], len(tags.first)
    keep = tf.repeat(tf.range(classes)[tf.newaxis], batch, axis=0)  # [B, C]
    spec = {"dynamic_size": False, "element_shape": [None, classes]}
    choices = tf.TensorArray(tf.int32, steps, **spec)

    def forward(i, best, choices):
        sums = best[:, :, tf.newaxis] + tags.transitions  # [B, from, to]
        inside = (i < tf.cast(lengths, tf.int32))[:, tf.newaxis]  # [B, 1]
        chosen = tf.argmax(sums, axis=1, output_type=tf.int32)
        moved = tf.where(i == 0, best, tf.reduce_max(sums, axis=1)) + padded[:, i]
        choices = choices.write(i, tf.where(inside & (i > 0), chosen, keep))
        return i + 1, tf.where(inside, moved, best), choices

    best = tf.repeat(tf.constant(tags.first)[tf.newaxis], batch, axis=0)  # [B, C] float64
    more = lambda i, *_: i < steps  # noqa: E731
    _, best, choices = tf.while_loop(more, forward, (0, best, choices))
    path = tf.TensorArray(tf.int32, steps, element_shape=[None])

    def back(i, current, path):
        path = path.write(i, current)
        return i - 1, tf.gather(choices.read(i), current, batch_dims=1), path

    last = tf.argmax(best, axis=1, output_type=tf.int32)
    _, _, path = tf.while_loop(lambda i, *_: i >= 0, back, (steps - 1, last, path))
    path = tf.transpose(path.stack())  # [B, S]
    return tf.RaggedTensor.from_tensor(path, lengths)
