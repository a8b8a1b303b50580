"""Scaled dot-product attention as a function, with the bias that says who may attend to whom.

`attention` knows nothing of layers: plain tensors in, a plain tensor out. `BertModel`,
`AlbertModel` and `TransformerBlock` take any function with its arguments as `attention_function`.

Shapes: B batch, T tokens (keys), Q queries, N heads, D head size.
"""

import math
from typing import Any

import keras
from keras import ops

from bert_tf.dropout import dropout

# Added to the scores of masked keys: as bert/modeling.py, finite, so that a row that is
# masked throughout still has a softmax.
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

    softmax(query key^T / sqrt(D) + bias) value, with dropout on the softmax.

    Args:
        query: [B, N, Q, D], in the precision that the products are computed in.
        key, value: [B, N, T, D], likewise.
        bias: what `attention_bias` returns, the rows of these queries: [B, 1, 1 or Q, T].
        dropout_rate: the share of the probabilities that is dropped.
        dropout_seed: two integers, as `bert_tf.dropout.dropout` takes them; None for no dropout.
        return_probabilities: whether to return the probabilities too. Training never asks for
            them, so a replacement for this function need not take this argument.

    Returns:
        The context [B, N, Q, D]; with the probabilities [B, N, Q, T], before dropout, if asked for.
    """
    # The query is scaled, as Q * D numbers are fewer than Q * T scores.
    query = query * (1.0 / math.sqrt(query.shape[-1]))
    scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # [B, N, Q, T]
    # The softmax is computed in float32 at least, whatever the products are computed in.
    precise = keras.backend.result_type(scores.dtype, "float32")
    scores = ops.cast(scores, precise) + ops.cast(bias, precise)
    probabilities = ops.cast(ops.softmax(scores, axis=-1), query.dtype)
    dropped = dropout(probabilities, dropout_rate, dropout_seed)
    context = ops.matmul(dropped, value)  # [B, N, Q, D]
    return (context, probabilities) if return_probabilities else context


def attention_bias(input_mask: Any, segment_index: Any = None) -> Any:
    """Makes the bias on the scores that keeps a token to its own sequence.

    Args:
        input_mask: [B, T] integers, 1 for a token and 0 for padding.
        segment_index: [B, T] integers: which sequence of a packed row a token belongs to; None
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
