"""Turns texts into rows of the encoder's input in a graph, as `finetuning.inputs` does in Python.

Shapes: B texts, T pieces of a row, N values of all rows.
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
        graph: its graph form, which a module must hold to be saved with it.
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
        """[CLS] text [SEP], texts cut to `max_length` with both: `Rows` of string [B]."""
        return self.join(heads(self.graph.encode_batch(texts), max_length - 2))

    def pairs(self, texts: tf.Tensor, seconds: tf.Tensor, max_length: int) -> Rows:
        """The rows of pairs, string [B] each; a single text's row where there is no second one."""
        first, other = self.graph.encode_batch(texts), self.graph.encode_batch(seconds)
        count, other_count = first.row_lengths(), other.row_lengths()  # [B]
        # As create_pretraining_data.instances.pairs.truncated_lengths.
        room = max_length - tf.where(other_count > 0, tf.constant(3, tf.int64), 2)
        kept = tf.minimum(other_count, tf.maximum(room // 2, room - count))
        return self.join(heads(first, tf.minimum(count, room - kept)), heads(other, kept))

    def join(self, first: tf.RaggedTensor, second: tf.RaggedTensor | None = None) -> Rows:
        """`Rows` of the pieces of first and second segments, int32 RaggedTensors [B, (pieces)]."""
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
    """The first values of each row: a RaggedTensor [B, (N)] and lengths, [B] or one for all."""
    lengths = tf.minimum(rows.row_lengths(), tf.cast(lengths, tf.int64))
    return parts(rows.values, rows.row_starts(), rows.row_starts() + lengths)


def parts(values: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor) -> tf.RaggedTensor:
    """The RaggedTensor [B, (parts)] of values [N, ...] from `begins` to `ends`, int64 [B] each."""
    places = tf.ragged.range(begins, ends)
    return places.with_values(tf.gather(values, places.values))


def dense(values: tf.Tensor, padding: Any, row_splits: tf.Tensor) -> tf.Tensor:
    """Values [N] as rows, [B, the most of a row], filled up."""
    rows = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
    return rows.to_tensor(padding)
