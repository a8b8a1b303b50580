"""Looks characters up in a TensorFlow graph.

Legend: B texts, C characters.
"""

import numpy as np
import tensorflow as tf


class Table:
    """A value for each code point, in pages, of which equal ones are stored once.

    Args:
        values: [CODE_POINTS], of int32 or bool.
    """

    def __init__(self, values: np.ndarray):
        pages, index = np.unique(values.reshape(-1, 256), axis=0, return_inverse=True)
        self._pages = pages.reshape(-1)
        self._starts = (index.reshape(-1) * 256).astype(np.int32)

    def __call__(self, code_points):
        """Looks up int32 code points of any shape."""
        starts = tf.gather(self._starts, tf.bitwise.right_shift(code_points, 8))
        return tf.gather(self._pages, starts + (code_points & 255))


class Replacements:
    """Replaces each character by a string, as `str.translate` does.

    Args:
        arrays: as from `tables.replacements`.
    """

    def __init__(self, arrays):
        values, starts, lengths = arrays
        self._values = np.append(values, np.int32(0))  # never empty
        self._starts, self._lengths = Table(starts), Table(lengths)

    def __call__(self, characters, splits):
        """Replaces code points [C] with row splits [B + 1]; returns both after the replacement."""
        lengths = self._lengths(characters)
        ends = tf.cumsum(lengths)
        source = tf.repeat(tf.range(tf.size(characters)), lengths)
        within = tf.range(tf.size(source)) - tf.gather(ends - lengths, source)
        starts = tf.gather(self._starts(characters), source)
        replaced = tf.gather(
            self._values, tf.maximum(starts, 0) + within * tf.cast(starts >= 0, tf.int32)
        )
        result = tf.where(starts < 0, tf.gather(characters, source), replaced)
        return result, tf.cast(tf.gather(tf.concat([[0], ends], axis=0), splits), tf.int64)
