"""Scaled dot-product attention as a function, with the bias that masks keys.

`attention` takes and returns plain tensors, without layers. `BertModel`, `AlbertModel` and
`TransformerBlock` accept any function with the same arguments as `attention_function`.

Shapes: B batch, T tokens (keys), Q queries, N heads, D head size.
"""

import math
from typing import Any

import keras
from keras import ops

from bert_tf.dropout import dropout

# Added to the scores of masked keys. It is finite, as in bert/modeling.py, so that a fully masked
# row still has a softmax.
MASKED_SCORE = -10000.0


def attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    dropout_rate: float = 0.0,
    dropout_seed: Any = None,
    *,
    return_probabilities: bool = False,
) -> Any:
    """Attends from every query to all keys, in each head (arXiv:1706.03762, section 3.2.1).

    Computes softmax(query key^T / sqrt(D) + bias) value, with dropout on the softmax.

    Args:
        query: [B, N, Q, D], in the precision of the matrix products.
        key, value: [B, N, T, D], in the same precision.
        bias: the queries' rows of an `attention_bias`, [B, 1, 1 or Q, T].
        dropout_rate: the share of the probabilities that is dropped.
        dropout_seed: two integers, the seed of `bert_tf.dropout.dropout`; None for no dropout.
        return_probabilities: whether to return the probabilities too. Training never requests
            them, so a replacement for this function need not take this argument.

    Returns:
        The context [B, N, Q, D], and the probabilities [B, N, Q, T] before dropout if requested.
    """
    # The query is scaled because Q * D numbers are fewer than Q * T scores.
    query = query * (1.0 / math.sqrt(query.shape[-1]))
    scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # [B, N, Q, T]
    # The softmax needs at least float32, whatever the precision of the products.
    precise = keras.backend.result_type(scores.dtype, "float32")
    scores = ops.cast(scores, precise) + ops.cast(bias, precise)
    probabilities = ops.cast(ops.softmax(scores, axis=-1), query.dtype)
    dropped = dropout(probabilities, dropout_rate, dropout_seed)
    context = ops.matmul(dropped, value)  # [B, N, Q, D]
    return (context, probabilities) if return_probabilities else context


def attention_bias(input_mask: Any, segment_index: Any = None) -> Any:
    """Computes the bias on the scores that restricts each token to its own sequence.

    Args:
        input_mask: [B, T] integers, 1 for a token and 0 for padding.
        segment_index: [B, T] integers, the index of each token's sequence in a packed row; None
            for rows of one sequence.

    Returns:
        [B, 1, 1, T] float32, or [B, 1, T, T] for packed rows: 0 where a query may attend to a
        key, `MASKED_SCORE` elsewhere.
    """
    allowed = ops.expand_dims(input_mask, (1, 2))  # [B, 1, 1, T]
    if segment_index is not None:
        same = ops.equal(segment_index[:, :, None], segment_index[:, None, :])  # [B, T, T]
        allowed = allowed * ops.cast(same[:, None], allowed.dtype)  # [B, 1, T, T]
    return (1.0 - ops.cast(allowed, "float32")) * MASKED_SCORE
