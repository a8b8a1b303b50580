"""Cuts spans out of texts in a graph, character by character.

Shapes: B texts, K spans of a text.
"""

import tensorflow as tf

from tokenization.tf_graph import tables
from tokenization.tf_graph.tables import Table


class Characters:
    """The characters of texts, string [B], and which of them are visible."""

    def __init__(self, texts: tf.Tensor) -> None:
        self.rows = tf.strings.unicode_decode(texts, "UTF-8")  # [B, (characters)]
        visible = ~Table(tables.having(str.isspace))(self.rows.values)
        self._visible = tf.where(visible)[:, 0]

    def strip(self, begins: tf.Tensor, ends: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Strips the white space at both ends of spans, int64 [B, K] each.

        Returns:
            The first characters and ends, int64 [B, K], and whether anything is left of each span.
        """
        starts = self.rows.row_starts()[:, tf.newaxis]  # [B, 1]
        shape = tf.shape(begins)
        first = tf.searchsorted(self._visible, tf.reshape(begins + starts, [-1]), "left", tf.int64)
        after = tf.searchsorted(self._visible, tf.reshape(ends + starts, [-1]), "left", tf.int64)
        visible = tf.concat([self._visible, [0]], axis=0)  # an index may be one past the last
        begins = tf.reshape(tf.gather(visible, first), shape) - starts
        ends = tf.reshape(tf.gather(visible, tf.maximum(after - 1, 0)), shape) + 1 - starts
        return begins, ends, tf.reshape(after > first, shape)

    def cut(self, begins: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """Returns the texts from `begins` to `ends`, int64 [B, K] each: string [B, K]."""
        shape, starts = tf.shape(begins), self.rows.row_starts()[:, tf.newaxis]
        places = tf.ragged.range(
            tf.reshape(begins + starts, [-1]), tf.reshape(ends + starts, [-1])
        )  # [B * K, (characters)]
        letters = places.with_values(tf.gather(self.rows.values, places.values))
        return tf.reshape(tf.strings.unicode_encode(letters, "UTF-8"), shape)
