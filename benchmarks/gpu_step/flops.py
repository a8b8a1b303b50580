"""Counts the floating-point operations of a training step by formula.

Only matrix products are counted, and three times those of the forward pass: a product's gradient
is two more products. What a recomputed block computes twice counts once, so that the share of a
card's peak is the "model FLOPs utilisation" of arXiv:2204.02311, appendix B.

Shapes: B rows, T tokens, P predictions, Q queries of the last block, H hidden, E embedding,
I intermediate, V vocabulary.
"""


def step_flops(config, rows, length, predictions):
    """The operations of one forward and backward pass, two for a multiplication and an addition.

    Args:
        config: a `BertConfig` or an `AlbertConfig`.
        rows: of the batch, each one sequence.
        length: its tokens.
        predictions: its masked positions.
    """
    return 3 * 2 * rows * forward_products(config, length, predictions)


def forward_products(config, length, predictions):
    """The multiplications in the matrix products of one row's forward pass.

    The last block computes the masked positions and [CLS] alone; its keys and values, all tokens.
    """
    t, p = length, predictions
    h, e, v = config.hidden_size, config.embedding_size, config.vocab_size
    first = (config.num_block_calls - 1) * _block(config, queries=t, tokens=t)
    last = _block(config, queries=p + 1, tokens=t)
    types = t * config.type_vocab_size * e  # rows of that table, by a product
    projection = 0 if e == h else t * e * h
    heads = p * (h * e + e * v) + h * h + 2 * h  # masked words, pooler, sentence pairs
    return first + last + types + projection + heads


def _block(config, queries, tokens):
    """Of one block: query with output, key with value, scores with context, both dense layers."""
    h, i = config.hidden_size, config.intermediate_size
    return 2 * queries * h * h + 2 * tokens * h * h + 2 * queries * tokens * h + 2 * queries * h * i
