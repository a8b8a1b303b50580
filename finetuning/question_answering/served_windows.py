"""Cuts contexts into windows in a graph, as `finetuning.question_answering.windows` in Python.

Shapes: B questions, W windows, T pieces of a row, C pieces of all contexts, P pieces of the context
in all windows.
"""

from typing import NamedTuple

import tensorflow as tf

from finetuning.serving.served_model import Rows
from finetuning.serving.text_rows import TextRows, parts


class Windows(NamedTuple):
    """The windows of all questions, in their order."""

    rows: Rows  # [CLS] question [SEP] part of the context [SEP], which is the second segment
    splits: tf.Tensor  # int64 [B + 1]: the row splits of the windows of each question
    sizes: tf.Tensor  # int64 [W]: how many pieces of the context a window shows
    # bool [W, the most of a window]: whether no window shows more of a piece's context.
    is_max_context: tf.Tensor
    pieces: tf.Tensor  # int64 [W]: the first of these among the pieces of all contexts
    spans: tf.Tensor  # int32 [C, 2]: first character and end of each of those


def make_windows(
    texts: TextRows,
    questions: tf.RaggedTensor,
    contexts: tuple[tf.RaggedTensor, tf.RaggedTensor],
    max_length: int,
    doc_stride: int,
) -> Windows:
    """Makes the windows of questions; each begins `doc_stride` pieces after the previous one.

    The questions' pieces are int32 RaggedTensor [B, (pieces)], contexts what `encode_with_offsets`
    returned: ids and spans.
    """
    ids, spans = contexts
    sizes = ids.row_lengths()  # [B]
    room = max_length - questions.row_lengths() - 3  # [B], see SPECIALS
    stride = tf.minimum(room, doc_stride)
    counts = 1 + tf.maximum(sizes - room + stride - 1, 0) // stride  # [B]
    owners = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)  # [W]
    places = tf.ragged.range(counts).values * tf.gather(stride, owners)  # [W]: where each begins
    ends = tf.minimum(places + tf.gather(room, owners), tf.gather(sizes, owners))
    begins = tf.gather(ids.row_starts(), owners) + places  # [W], among all pieces
    shown = ends - places
    of_contexts = parts(ids.values, begins, begins + shown)  # [W, (P)]
    asked = texts.join(tf.gather(questions, owners))
    seps = tf.fill([tf.size(owners), 1], texts.sep)
    row_ids = tf.concat([asked.ids, of_contexts, seps], axis=1)
    is_max = _max_contexts(begins, shown, tf.size(ids.values, tf.int64))  # [P]
    is_max = of_contexts.with_values(is_max).to_tensor(False)
    return Windows(
        rows=Rows(row_ids, asked.first_lengths),
        splits=tf.concat([[0], tf.cumsum(counts)], axis=0),
        sizes=shown,
        is_max_context=is_max,
        pieces=begins,
        spans=spans.values,
    )


def _max_contexts(begins, sizes, count):
    """Whether each piece of a window has its maximal context there, bool [P].

    Of each window there is the first piece among all, int64 [W], and how many it shows; `count` is
    how many pieces there are, C.
    """
    inside = tf.ragged.range(sizes)  # [W, (P)]
    window = inside.value_rowids()  # [P]
    size = tf.gather(sizes, window)
    piece = inside.values + tf.gather(begins, window)  # [P]
    nearest = tf.minimum(inside.values, size - 1 - inside.values)
    # float64, as Python computes it: windows of about equal size must not become equal.
    score = tf.cast(nearest, tf.float64) + 0.01 * tf.cast(size, tf.float64)
    best = tf.math.unsorted_segment_max(score, piece, count)  # [C]
    is_best = score == tf.gather(best, piece)
    last = tf.size(sizes, tf.int64)
    chosen = tf.math.unsorted_segment_min(tf.where(is_best, window, last), piece, count)  # [C]
    return window == tf.gather(chosen, piece)
