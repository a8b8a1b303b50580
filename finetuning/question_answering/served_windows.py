"""Cuts contexts into windows in a graph, as `finetuning.question_answering.windows` does.

Shapes: B questions, W windows, T tokens (pieces) of a row, C tokens of all contexts, P context
tokens of all windows.
"""

from typing import NamedTuple

import tensorflow as tf

from finetuning.serving.served_model import Rows
from finetuning.serving.text_rows import TextRows, parts


class Windows(NamedTuple):
    """The windows of all questions, in their order."""

    rows: Rows  # [CLS] question [SEP] part of the context [SEP], which is the second segment
    splits: tf.Tensor  # int64 [B + 1]: the row splits of the windows of each question
    sizes: tf.Tensor  # int64 [W]: the number of context tokens in a window
    # bool [W, the largest size]: whether no other window shows more context around a token.
    is_max_context: tf.Tensor
    pieces: tf.Tensor  # int64 [W]: the index of a window's first token among all contexts' tokens
    spans: tf.Tensor  # int32 [C, 2]: first character and end of each token of all contexts


def make_windows(
    texts: TextRows,
    questions: tf.RaggedTensor,
    contexts: tuple[tf.RaggedTensor, tf.RaggedTensor],
    max_length: int,
    doc_stride: int,
) -> Windows:
    """Makes the windows of questions; each begins `doc_stride` tokens after the previous one.

    `questions` is an int32 RaggedTensor [B, (tokens)]; `contexts` is the ids and spans that
    `encode_with_offsets` returned.
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
    """Returns whether each token of a window has its maximal context there, bool [P].

    `begins`, int64 [W], is the index of each window's first token among all tokens, `sizes` its
    number of tokens, and `count` the number of all tokens, C.
    """
    inside = tf.ragged.range(sizes)  # [W, (P)]
    window = inside.value_rowids()  # [P]
    size = tf.gather(sizes, window)
    piece = inside.values + tf.gather(begins, window)  # [P]
    nearest = tf.minimum(inside.values, size - 1 - inside.values)
    # float64, as in Python, so that windows of about equal size do not tie.
    score = tf.cast(nearest, tf.float64) + 0.01 * tf.cast(size, tf.float64)
    best = tf.math.unsorted_segment_max(score, piece, count)  # [C]
    is_best = score == tf.gather(best, piece)
    last = tf.size(sizes, tf.int64)
    chosen = tf.math.unsorted_segment_min(tf.where(is_best, window, last), piece, count)  # [C]
    return window == tf.gather(chosen, piece)
