"""Turns texts into rows of the encoder's input in a graph, as `finetuning.inputs` does in Python.

Shapes: B texts, T tokens of a row, N values of all rows.
"""

from typing import Any

import tensorflow as tf

from bert_common.errors import InputError
from finetuning.serving.served_model import Rows
from tokenization.base import TokenizerInterface
from tokenization.tf_graph.graph import KINDS, GraphTokenizer
from tokenization.tf_graph.sentencepiece import GraphSentencePiece

# The graph form of each kind of tokenizer.
GRAPHS: dict[str, Any] = {
    **dict.fromkeys(KINDS, GraphTokenizer),
    "sentencepiece": GraphSentencePiece,
}


class TextRows:
    """Makes `Rows` of texts.

    Attributes:
        graph: the tokenizer's graph form, which a module must hold to be saved with it.
        cls, sep: the ids of [CLS] and [SEP].

    Raises:
        InputError: the tokenizer has no [CLS] or [SEP], or no graph form.
    """

    def __init__(self, tokenizer: TokenizerInterface) -> None:
        if tokenizer.cls_id is None or tokenizer.sep_id is None:
            raise InputError("a model that takes text must have a vocabulary with [CLS] and [SEP]")
        self.graph = GRAPHS[tokenizer.kind](tokenizer)
        self.cls, self.sep = tokenizer.cls_id, tokenizer.sep_id

    def singles(self, texts: tf.Tensor, max_length: int) -> Rows:
        """Makes rows [CLS] text [SEP], cut to `max_length` tokens, of texts, string [B]."""
        return self.join(heads(self.graph.encode_batch(texts), max_length - 2))

    def pairs(self, texts: tf.Tensor, seconds: tf.Tensor, max_length: int) -> Rows:
        """Makes rows of pairs, string [B] each; with an empty second text, the row of one text."""
        first, other = self.graph.encode_batch(texts), self.graph.encode_batch(seconds)
        count, other_count = first.row_lengths(), other.row_lengths()  # [B]
        # As in create_pretraining_data.instances.pairs.truncated_lengths.
        room = max_length - tf.where(other_count > 0, tf.constant(3, tf.int64), 2)
        kept = tf.minimum(other_count, tf.maximum(room // 2, room - count))
        return self.join(heads(first, tf.minimum(count, room - kept)), heads(other, kept))

    def join(self, first: tf.RaggedTensor, second: tf.RaggedTensor | None = None) -> Rows:
        """Makes `Rows` of first and second segments' ids, int32 RaggedTensors [B, (tokens)]."""
        ones = tf.ones([first.nrows(), 1], tf.int32)  # [B, 1]
        columns = [ones * self.cls, first, ones * self.sep]
        if second is not None:
            ends = tf.cast(second.row_lengths() > 0, tf.int64)  # [B]
            ends = tf.RaggedTensor.from_row_lengths(
                tf.fill([tf.reduce_sum(ends)], self.sep), ends, validate=False
            )
            columns += [second, ends]
        return Rows(tf.concat(columns, axis=1), first.row_lengths() + 2)


def heads(rows: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Keeps each row's first values of a RaggedTensor [B, (N)]; `lengths` are [B] or a scalar."""
    lengths = tf.minimum(rows.row_lengths(), tf.cast(lengths, tf.int64))
    return parts(rows.values, rows.row_starts(), rows.row_starts() + lengths)


def parts(values: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor) -> tf.RaggedTensor:
    """Cuts values [N, ...] from `begins` to `ends`, int64 [B] each: a RaggedTensor [B, (parts)]."""
    places = tf.ragged.range(begins, ends)
    return places.with_values(tf.gather(values, places.values))


def dense(values: tf.Tensor, padding: Any, row_splits: tf.Tensor) -> tf.Tensor:
    """Splits values [N] into rows and pads them to the longest: [B, longest]."""
    rows = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
    return rows.to_tensor(padding)
