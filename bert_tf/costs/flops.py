"""Counts the floating-point operations of a pre-training step with formulas.

Only matrix products count, as is usual for the utilization of a device (arXiv:2204.02311, appendix
B); a product of [m, k] and [k, n] takes 2 m k n operations. The formulas follow this project's
model, whose last block runs only at the masked positions and at [CLS]. The usual formula, in which
it runs everywhere, counts up to a tenth more.

Legend: T tokens of a row, P predictions, S sequences of a packed row, H hidden, E embedding,
I intermediate, V vocabulary.
"""

from typing import Any

from bert_tf.config import EncoderConfig
from bert_tf.costs.dropped_tokens import lengths_of_calls

# The backward pass computes two products for each product of the forward pass, one per factor.
TRAINING_PASSES = 3


def forward_flops(
    config: EncoderConfig,
    length: int,
    predictions: int,
    sequences: int = 1,
    token_dropping: float = 0.0,
) -> int:
    """Counts the operations of the forward pass over a row with room for `sequences` sequences.

    `token_dropping` is the share of the tokens that skip the middle layers.
    """
    h, e = config.hidden_size, config.embedding_size
    embeddings = 2 * length * config.type_vocab_size * e
    if e != h:
        embeddings += 2 * length * e * h
    pooler = sequences * (2 * h * h * config.has_pooler + 2 * h * 2)
    masked_words = predictions * (2 * h * e + 2 * e * config.vocab_size)
    blocks = block_flops(config, length, predictions, sequences, token_dropping)
    return embeddings + blocks + pooler + masked_words


def block_flops(
    config: EncoderConfig,
    length: int,
    predictions: int,
    sequences: int = 1,
    token_dropping: float = 0.0,
) -> int:
    """Counts all blocks' operations in a forward pass over a row; see `forward_flops`."""
    calls, sizes = config.num_block_calls, (length, token_dropping, predictions, sequences)
    pairs = lengths_of_calls(calls, *sizes) if token_dropping else [(length, length)] * (calls - 1)
    last = (length, sequences + predictions)
    return sum(config.block.flops(config, *pair) for pair in (*pairs, last))


def training_flops(config: EncoderConfig, *sizes: Any, **options: Any) -> int:
    """Counts a forward and a backward pass over a row; arguments as for `forward_flops`.

    Recomputed activations do not count, as they are not progress.
    """
    return TRAINING_PASSES * forward_flops(config, *sizes, **options)
