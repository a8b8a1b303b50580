"""Finds where in its text each WordPiece of a TensorFlow graph was.

Shapes: B texts, C characters, W words, K characters of words, P pieces.
"""

from typing import NamedTuple

import tensorflow as tf

AFTER_ALL = 2**31 - 1  # a place after every character


class Words(NamedTuple):
    """The words of all texts, with the characters that they are made of."""

    spelled: tf.Tensor  # string [W]: as WordPiece cuts them, with their markers
    splits: tf.Tensor  # int64 [B + 1]: the row splits of the words of each text
    letters: tf.RaggedTensor  # int32 [W, (K)]: their code points, without a marker after a word
    places: tf.Tensor  # int64 [K]: which of all characters [C] each letter is
    marks: tf.Tensor  # bool [K]: whether it is the marker at the end of an eojeol
    too_long: tf.Tensor  # bool [W]: whether the word became a single [UNK] for its length


def piece_spans(words: Words, owners: tf.Tensor, offsets: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
    """The first character and the end of each piece in its text, int32 [P, 2].

    Args:
        owners: the word of each piece, int64 [P].
        offsets: its first byte and its end in the spelled word, int64 [P, 2].
        spans: the first character and the end in its text of each character, int32 [C, 2].
    """
    spans = tf.gather(spans, words.places)  # [K, 2]
    texts = tf.searchsorted(words.splits, words.letters.value_rowids(), "right", tf.int64)  # [K]
    same = tf.concat([texts[1:] == texts[:-1], [False]], axis=0)[: tf.size(texts)]
    following = tf.where(same, tf.concat([spans[1:, 0], [0]], axis=0)[: tf.size(texts)], AFTER_ALL)
    # A marker has an empty span at the end of the character before it, or that one's span if what
    # follows is from the same original.
    before = tf.concat([spans[:1], spans[:-1]], axis=0)  # [K, 2]
    starts = tf.where(following < before[:, 1], before[:, 0], before[:, 1])  # [K]
    markers = tf.stack([starts, before[:, 1]], axis=1)  # [K, 2]
    spans = tf.where(words.marks[:, tf.newaxis], markers, spans)
    letters = words.letters.values  # [K]
    sizes = 1 + sum(tf.cast(letters >= least, tf.int64) for least in (0x80, 0x800, 0x10000))
    ends = tf.cumsum(sizes)  # [K]: where in the bytes of all words each letter ends
    begins = ends - sizes
    first, last = words.letters.row_starts(), words.letters.row_limits() - 1  # [W] each
    first, last = tf.gather(first, owners), tf.gather(last, owners)  # [P] each
    word_begin = tf.gather(begins, first)
    # What follows the word's letters is its marker.
    after = offsets[:, 0] >= tf.gather(ends, last) - word_begin
    start = tf.searchsorted(begins, word_begin + offsets[:, 0], "right", tf.int64) - 1
    end = tf.searchsorted(begins, word_begin + offsets[:, 1], "left", tf.int64) - 1
    whole = tf.gather(words.too_long, owners)
    start = tf.where(whole, first, tf.minimum(start, last))
    end = tf.where(whole, last, tf.minimum(end, last))
    ends = tf.gather(spans[:, 1], end)
    after &= tf.gather(following, last) >= ends
    return tf.stack([tf.where(after, ends, tf.gather(spans[:, 0], start)), ends], axis=1)
