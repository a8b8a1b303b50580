"""Estimates, before training starts, how much memory it will need."""

from collections.abc import Sequence
from typing import Any

from bert_tf.config import EncoderConfig
from bert_tf.costs.dropped_tokens import lengths_of_calls
from bert_tf.names import BLOCK_QUERIES

GIB = 2**30

# Bytes of a weight, of its gradient and of each of its slots in the optimizer: float32.
WEIGHT_BYTES = 4

# What Adam and LAMB keep for each weight: two moments.
ADAM_SLOTS = 2

# Bytes of an element of a block's arrays, fitted to peaks on a CPU (benchmarks.speed.memory): in a
# block that keeps its arrays for the gradient (XLA recomputes some of them), and in the one block
# at a time that is recomputed, where scores count separately (their softmax is in float32).
KEPT_BYTES = {"float32": 3.3, "bfloat16": 2.6, "float16": 2.6}
RECOMPUTED_BYTES = {"float32": 4.0, "bfloat16": 1.5, "float16": 1.5}
RECOMPUTED_SCORE_BYTES = {"float32": 4.0, "bfloat16": 8.1, "float16": 8.1}

# The logits [B, P, V], their softmax and their gradient; in float32.
LOGIT_ARRAYS = 3

# TensorFlow itself, its graphs, input buffers; fitted to the same measurements.
RUNTIME_BYTES = 1.0 * GIB


def count_parts(config: EncoderConfig) -> dict[str, int]:
    """Counts the weights in each part of a pre-training model, with "heads" of both objectives."""
    h, e = config.hidden_size, config.embedding_size
    heads = (h * e + e + 2 * e + config.vocab_size) + (2 * h + 2)
    return {**config.count_parts(), "heads": heads}


def count_weights(config: EncoderConfig) -> int:
    """Counts the weights of a pre-training model with both heads."""
    return sum(count_parts(config).values())


def estimate_bytes(
    config: EncoderConfig,
    batch: int,
    length: int,
    predictions: int,
    precision: str = "float32",
    recompute: str = "none",
    *,
    slots: int = ADAM_SLOTS,
    blockwise: bool = False,
    token_dropping: float = 0.0,
    networks: Sequence[EncoderConfig] = (),
    weights: int | None = None,
) -> float:
    """The memory of one device while it trains: in most cases within 20 %.

    The last block counts like the others, though it is run at the masked positions alone.

    Args:
        batch: examples that it computes at once, of `length` tokens and so many masked positions.
        slots: how many numbers the optimizer keeps for each weight.
        blockwise: whether attention is `bert_tf.blockwise_attention`, which keeps no scores.
        token_dropping: the share of the tokens that skip the middle layers.
        networks: the configurations of all encoders that are trained; empty for this one.
        weights: how many there are; None for those that `count_weights` counts.
    """
    kept = sum(
        kept_bytes(network, batch, length, precision, recompute, blockwise)
        for network in networks or (config,)
    )
    if token_dropping:
        calls = config.num_block_calls
        pairs = lengths_of_calls(calls, length, token_dropping, predictions)
        # What a call keeps goes with the tokens that it computes, the last one's included.
        kept *= (sum(queries for _, queries in pairs) + length) / (calls * length)
    logits = logit_bytes(config, batch, predictions)
    of_weights = WEIGHT_BYTES * (count_weights(config) if weights is None else weights)
    # With gradients and slots; XLA writes what an update makes of them beside the old values.
    training, update = (2 + slots) * of_weights, (1 + 2 * (1 + slots)) * of_weights
    return max(training + kept + logits, update) + RUNTIME_BYTES


def kept_bytes(
    config: EncoderConfig,
    batch: int,
    length: int,
    precision: str,
    recompute: str,
    blockwise: bool,
) -> float:
    """Counts the bytes that an encoder's blocks keep for their gradients; arguments as above."""
    c, arrays = config, config.block.KEPT
    hidden = batch * length * c.hidden_size
    block = arrays["hidden"] * hidden
    block += arrays["intermediate"] * batch * length * c.intermediate_size
    blockwise = blockwise and length > BLOCK_QUERIES
    queries = BLOCK_QUERIES if blockwise else length
    scores = arrays["scores"] * batch * c.num_attention_heads * queries * length
    calls = c.num_block_calls
    if recompute == "none":
        return (calls * block + (1 if blockwise else calls) * scores) * KEPT_BYTES[precision]
    inputs = calls * hidden * (4 if precision == "float32" else 2)
    one = block * RECOMPUTED_BYTES[precision] + scores * RECOMPUTED_SCORE_BYTES[precision]
    return inputs + one


def logit_bytes(config: EncoderConfig, batch: int, predictions: int) -> int:
    """The memory of the logits of masked words with their softmax and gradient."""
    return LOGIT_ARRAYS * batch * predictions * config.vocab_size * 4


def inference_bytes(
    config: EncoderConfig, batch: int, length: int, precision: str = "float32"
) -> float:
    """The memory of one device while it computes vectors of texts without gradients: an estimate.

    `batch` are the rows that it computes at once, `length` their tokens. Weights are kept in
    float32 in any precision.
    """
    parts = count_parts(config)
    weights = WEIGHT_BYTES * (sum(parts.values()) - parts["heads"])
    element = 4 if precision == "float32" else 2
    sizes = {  # bytes of an array, for each token
        "hidden": element * config.hidden_size,
        "intermediate": element * config.intermediate_size,
        "scores": 4 * config.num_attention_heads * length,  # their softmax is in float32
    }
    attention, feed_forward = (
        sum(count * sizes[name] for name, count in used.items())
        for used in (config.block.IN_ATTENTION, config.block.IN_FEED_FORWARD)
    )
    return weights + batch * length * max(attention, feed_forward) + RUNTIME_BYTES


def teacher_bytes(
    config: EncoderConfig,
    batch: int,
    length: int,
    predictions: int = 0,
    relations: int = 0,
    precision: str = "float32",
) -> float:
    """The memory of a frozen teacher on a device that trains (`bert_tf.distillation`): estimated.

    `batch` are the examples that the device computes at once, `predictions` their masked positions
    whose logits it computes, `relations` arrays [T, T] of each, one for every head of every
    relation; there are both softmaxes and the gradient of one. Weights are kept in float32.
    """
    network = inference_bytes(config, batch, length, precision) - RUNTIME_BYTES
    head = WEIGHT_BYTES * count_parts(config)["heads"] if predictions else 0
    compared = 3 * 4 * batch * relations * length * length
    return network + head + logit_bytes(config, batch, predictions) + compared


def memory_line(
    config: EncoderConfig,
    batch: int,
    length: int,
    predictions: int,
    precision: str,
    recompute: str,
    *,
    weights: int | None = None,
    beside: float = 0.0,
    **options: Any,
) -> str:
    """Writes one line: weights, estimated memory, and the memory with or without recomputation.

    Takes the arguments of `estimate_bytes`; `beside` are the bytes of what else is on the device.
    """
    weights = count_weights(config) if weights is None else weights
    sizes, options = (batch, length, predictions, precision), {"weights": weights, **options}
    plain, saving = (
        (estimate_bytes(config, *sizes, kind, **options) + beside) / GIB
        for kind in ("none", "block")
    )
    line = f"{weights:,} weights; about {{:.1f}} GiB of memory per device at {batch} x {length}"
    if recompute == "block":
        return line.format(saving) + f" ({plain:.1f} without --recompute=block)"
    return line.format(plain) + f" ({saving:.1f} with --recompute=block)"
