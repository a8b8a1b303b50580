"""Estimates the memory that training takes, before anything is spent."""

import bisect

GIB = 2**30

# Where the search for the largest batch ends: no device has memory for so many.
MAX_BATCH = 2**20

# Bytes a weight: its float32 value, gradient and two moments; in the update also the three new
# values, as XLA writes them beside the old ones.
BYTES_PER_WEIGHT, BYTES_IN_UPDATE = 16, 28

# Arrays that a block keeps for its gradient, by their shape (B examples of T tokens, H hidden,
# I intermediate, N heads): counted in the block's code.
HIDDEN_ARRAYS = 12  # [B, T, H]
INTERMEDIATE_ARRAYS = 4  # [B, T, I]
SCORE_ARRAYS = 3  # [B, N, T, T]

# Bytes of a number of those arrays, fitted to peaks that benchmarks/memory.py measured on a CPU:
# where a block's arrays are kept for the gradient (some are computed again), and in the one block
# that is computed again, apart for its scores (whose softmax is float32 always).
KEPT_BYTES = {"float32": 3.3, "bfloat16": 2.6, "float16": 2.6}
AGAIN_BYTES = {"float32": 4.0, "bfloat16": 1.5, "float16": 1.5}
SCORE_BYTES_AGAIN = {"float32": 4.0, "bfloat16": 8.1, "float16": 8.1}

# Logits [B, P, V]: themselves, their softmax, their gradient; in float32.
LOGIT_ARRAYS = 3

# TensorFlow itself, its graphs, input buffers; fitted likewise.
RUNTIME_BYTES = 1.0 * GIB


def count_weights(config):
    """How many weights a pre-training model with both heads has."""
    c = config
    h, i, e = c.hidden_size, c.intermediate_size, c.embedding_size
    block = 4 * (h * h + h) + (h * i + i) + (i * h + h) + 4 * h
    groups = getattr(c, "num_hidden_groups", None)
    blocks = groups * c.inner_group_num if groups else c.num_hidden_layers
    embeddings = (c.vocab_size + c.type_vocab_size + c.max_position_embeddings) * e + 2 * e
    projection = 0 if e == h else e * h + h
    heads = (h * h + h) + (h * e + e + 2 * e + c.vocab_size) + (2 * h + 2)
    return embeddings + projection + blocks * block + heads


def estimate_bytes(config, batch, length, predictions, precision="float32", recompute="none"):
    """The memory of one device while it trains.

    The last block counts like the others, though it is run at the masked positions alone.

    Args:
        config: the model's configuration.
        batch: examples that it computes at a time.
        length: tokens of an example.
        predictions: places for masked words of an example.
        precision: "float32", "bfloat16" or "float16".
        recompute: "none" or "block".

    Returns:
        Bytes; an estimate, in most cases within a fifth.
    """
    c = config
    size = 4 if precision == "float32" else 2
    hidden = batch * length * c.hidden_size
    scores = batch * c.num_attention_heads * length * length
    intermediate = batch * length * c.intermediate_size
    block = HIDDEN_ARRAYS * hidden + INTERMEDIATE_ARRAYS * intermediate
    scores *= SCORE_ARRAYS
    blocks = c.num_hidden_layers * getattr(c, "inner_group_num", 1)
    if recompute == "none":
        kept = blocks * (block + scores) * KEPT_BYTES[precision]
    else:
        kept = blocks * hidden * size + block * AGAIN_BYTES[precision]
        kept += scores * SCORE_BYTES_AGAIN[precision]
    logits = LOGIT_ARRAYS * batch * predictions * c.vocab_size * 4
    weights = count_weights(config)
    step = BYTES_PER_WEIGHT * weights + kept + logits
    return max(step, BYTES_IN_UPDATE * weights) + RUNTIME_BYTES


def largest_batch(limit, config, length, predictions, precision="float32", recompute="none"):
    """The largest batch that is estimated to fit; `limit` is in bytes, the rest as above."""
    return bisect.bisect_right(
        range(1, MAX_BATCH),
        limit,
        key=lambda batch: estimate_bytes(config, batch, length, predictions, precision, recompute),
    )


def memory_line(config, batch, length, predictions, precision, recompute):
    """One line: weights, estimated memory, what recomputation would save or saves."""
    plain, saving = (
        estimate_bytes(config, batch, length, predictions, precision, kind)
        for kind in ("none", "block")
    )
    line = f"{count_weights(config):,} weights; about {{:.1f}} GiB a device at {batch} x {length}"
    if recompute == "block":
        return line.format(saving / GIB) + f" ({plain / GIB:.1f} without --recompute=block)"
    return line.format(plain / GIB) + f" ({saving / GIB:.1f} with --recompute=block)"
