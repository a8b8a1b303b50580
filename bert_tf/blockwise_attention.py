"""Attention that computes the scores of one block of queries at a time, forward and backward.

`blockwise_attention` takes the arguments of `bert_tf.attention.attention` and returns the same
numbers, dropout included. While `attention` keeps arrays of B x N x Q x T for its gradient,
`blockwise_attention` keeps query, key and value, and recomputes each block's scores (Rabe and
Staats, arXiv:2112.05682, section 3; FlashAttention, arXiv:2205.14135, section 3.1). A block has
whole rows of scores, so its softmax needs no running maximum, unlike with blocks of keys. XLA holds
the scores of one block; without XLA, TensorFlow may run up to ten in parallel (`tf.while_loop`).

Shapes: B batch, T tokens (keys), Q queries, N heads, D head size, S blocks, C queries per block.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.attention import attention
from bert_tf.dropout import dropout
from bert_tf.names import ATTENTION_NAMES, BLOCK_QUERIES, is_blockwise


def blockwise_attention(
    query: Any, key: Any, value: Any, bias: Any, dropout_rate: float = 0.0, dropout_seed: Any = None
) -> Any:
    """Computes `bert_tf.attention.attention` with memory linear in the number of keys.

    No gradient flows into the bias.
    """
    queries = query.shape[2]
    if queries <= BLOCK_QUERIES:
        return attention(query, key, value, bias, dropout_rate, dropout_seed)
    blocks = _Blocks(query, key, bias, dropout_rate, dropout_seed)

    @ops.custom_gradient
    def attend(query, key, value):
        split = blocks.split(query * blocks.scale)  # [S, B, N, C, D]

        def run(i, context):
            kept, _ = blocks.probabilities(i, split[i], key)
            return _replace(context, i, ops.matmul(kept, value))

        context = ops.fori_loop(0, blocks.count, run, ops.zeros_like(split))

        def gradient(*arguments, upstream=None):
            upstream = arguments[0] if upstream is None else upstream
            return _gradient(blocks, split, key, value, blocks.split(upstream))

        return blocks.joined(context), gradient

    return attend(query, key, value)


def automatic_attention(query: Any, key: Any, *arguments: Any) -> Any:
    """Uses `blockwise_attention` for rows of at least `BLOCKWISE_TOKENS`, else `attention`.

    A graph of unknown length, whose T is None, uses `attention`.
    """
    function = blockwise_attention if is_blockwise("auto", key.shape[2] or 0) else attention
    return function(query, key, *arguments)


_FUNCTIONS: tuple[Callable[..., Any], ...] = (automatic_attention, attention, blockwise_attention)
ATTENTION_FUNCTIONS = dict(zip(ATTENTION_NAMES, _FUNCTIONS, strict=True))


def _gradient(blocks, split, key, value, upstream):
    """Computes the gradients of query, key and value.

    `split` is the query times `blocks.scale`, and `upstream` the gradient of the context, both
    [S, B, N, C, D]; key and value are [B, N, T, D].
    """

    def run(i, totals):
        of_query, of_key, of_value = totals
        kept, softmax = blocks.probabilities(i, split[i], key)  # [B, N, C, T]
        of_value = of_value + _transposed_product(kept, upstream[i])  # [B, N, T, D]
        of_kept = ops.matmul(upstream[i], _transpose(value))  # [B, N, C, T]
        of_softmax = ops.cast(blocks.dropped(i, of_kept), softmax.dtype)
        inner = ops.sum(of_softmax * softmax, axis=-1, keepdims=True)  # [B, N, C, 1]
        of_scores = ops.cast(softmax * (of_softmax - inner), key.dtype)  # [B, N, C, T]
        of_query = _replace(of_query, i, ops.matmul(of_scores, key) * blocks.scale)
        of_key = of_key + _transposed_product(of_scores, split[i])  # [B, N, T, D]
        return of_query, of_key, of_value

    # Sums over blocks are float32 at least, like the sums inside a product of whole arrays.
    precise = keras.backend.result_type(key.dtype, "float32")
    zeros = ops.zeros(ops.shape(key), precise)  # [B, N, T, D]
    totals = (ops.zeros_like(split), zeros, zeros)
    of_query, of_key, of_value = ops.fori_loop(0, blocks.count, run, totals)
    return blocks.joined(of_query), ops.cast(of_key, key.dtype), ops.cast(of_value, value.dtype)


class _Blocks:
    """Splits the queries, and holds the inputs of the scores other than query and key.

    There are `count` blocks, the last one padded; `scale` multiplies query times key.
    """

    def __init__(self, query, key, bias, dropout_rate, dropout_seed):
        self.queries = query.shape[2]
        self.count = -(-self.queries // BLOCK_QUERIES)
        self.scale = 1.0 / math.sqrt(query.shape[-1])
        self.bias = bias if bias.shape[2] == 1 else self.split(bias)  # or [S, B, 1, C, T]
        self.rate = dropout_rate
        self.seed = dropout_seed
        batch, heads = ops.shape(query)[0], query.shape[1]
        first = ops.reshape(ops.arange(batch * heads, dtype="int32") * self.queries, (batch, heads))
        block = ops.arange(BLOCK_QUERIES, dtype="int32")
        self.rows = first[:, :, None] + block  # [B, N, C], the rows of the first block

    def split(self, x):
        """Splits [B, N, Q, W] into [S, B, N, C, W], with zeros after the last query."""
        batch, heads, _, width = ops.shape(x)
        missing = self.count * BLOCK_QUERIES - self.queries
        x = ops.pad(x, ((0, 0), (0, 0), (0, missing), (0, 0)))  # [B, N, S * C, W]
        x = ops.reshape(x, (batch, heads, self.count, BLOCK_QUERIES, width))  # [B, N, S, C, W]
        return ops.transpose(x, (2, 0, 1, 3, 4))

    def joined(self, x):
        """Joins [S, B, N, C, W] to [B, N, Q, W]; the inverse of `split`."""
        _, batch, heads, _, width = ops.shape(x)
        x = ops.transpose(x, (1, 2, 0, 3, 4))  # [B, N, S, C, W]
        return ops.reshape(x, (batch, heads, self.count * BLOCK_QUERIES, width))[
            :, :, : self.queries
        ]

    def probabilities(self, i, query, key):
        """Returns the probabilities of block `i` after dropout, and its float32 softmax before it.

        Takes the block's queries times `scale`, [B, N, C, D], and the keys, [B, N, T, D].
        """
        scores = ops.matmul(query, _transpose(key))  # [B, N, C, T]
        precise = keras.backend.result_type(scores.dtype, "float32")
        bias = self.bias if len(self.bias.shape) == 4 else self.bias[i]
        softmax = ops.softmax(ops.cast(scores, precise) + ops.cast(bias, precise), axis=-1)
        return self.dropped(i, ops.cast(softmax, query.dtype)), softmax

    def dropped(self, i, x):
        """Applies block `i`'s part of the whole dropout mask to x [B, N, C, T]."""
        return dropout(x, self.rate, self.seed, self.rows + i * BLOCK_QUERIES)


def _transpose(x):
    """Transposes [..., T, D] to [..., D, T]."""
    return ops.swapaxes(x, -1, -2)


def _transposed_product(x, y):
    """Sums over queries: [B, N, C, T] and [B, N, C, D] -> [B, N, T, D], in float32 at least."""
    precise = keras.backend.result_type(x.dtype, "float32")
    return ops.cast(ops.matmul(_transpose(x), y), precise)


def _replace(blocks, i, block):
    """Returns the blocks [S, ...] with the block at `i` replaced."""
    return ops.scatter_update(blocks, ops.reshape(i, (1, 1)), block[None])
