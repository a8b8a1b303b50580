"""Estimates how much memory training will need before it starts."""

from collections.abc import Sequence
from typing import Any

from bert_tf.config import EncoderConfig
from bert_tf.costs.dropped_tokens import lengths_of_calls
from bert_tf.names import BLOCK_QUERIES

GIB = 2**30

# The bytes of a weight, its gradient and each of its optimizer slots, all float32.
WEIGHT_BYTES = 4

# Adam and LAMB keep two moments per weight.
ADAM_SLOTS = 2

# Bytes per element of a block's arrays, fitted to peaks on a CPU (benchmarks.speed.memory). KEPT is
# for blocks that keep arrays for the gradient (XLA recomputes some of them), RECOMPUTED for the one
# block being recomputed, whose scores count separately, as their softmax is in float32.
KEPT_BYTES = {"float32": 3.3, "bfloat16": 2.6, "float16": 2.6}
RECOMPUTED_BYTES = {"float32": 4.0, "bfloat16": 1.5, "float16": 1.5}
RECOMPUTED_SCORE_BYTES = {"float32": 4.0, "bfloat16": 8.1, "float16": 8.1}

# The logits [B, P, V], their softmax and their gradient, all in float32.
LOGIT_ARRAYS = 3

# TensorFlow itself, its graphs and its input buffers, fitted to the same measurements.
RUNTIME_BYTES = 1.0 * GIB


def count_parts(config: EncoderConfig) -> dict[str, int]:
    """Counts the weights in each part of a pre-training model; "heads" covers both objectives."""
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
    """Estimates the memory of one device during training, in most cases within 20 %.

    The last block counts like the others, although it runs only at the masked positions.

    Args:
        batch: the examples computed at once, of `length` tokens and `predictions` masked positions.
        slots: how many numbers the optimizer keeps per weight.
        blockwise: whether attention is `bert_tf.blockwise_attention`, which keeps no scores.
        token_dropping: the share of the tokens that skip the middle layers.
        networks: the configurations of all trained encoders; empty if `config` is the only one.
        weights: the number of weights; None to use `count_weights`.
    """
    kept = sum(
        kept_bytes(network, batch, length, precision, recompute, blockwise)
        for network in networks or (config,)
    )
    if token_dropping:
        calls = config.num_block_calls
        pairs = lengths_of_calls(calls, length, token_dropping, predictions)
        # The kept memory is proportional to the tokens computed, with the last call in full.
        kept *= (sum(queries for _, queries in pairs) + length) / (calls * length)
    logits = logit_bytes(config, batch, predictions)
    of_weights = WEIGHT_BYTES * (count_weights(config) if weights is None else weights)
    # Weights, gradients and slots; in an update, XLA writes the new values beside the old ones.
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
    """Estimates the bytes that an encoder's blocks keep for gradients; see `estimate_bytes`."""
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
    """Counts the bytes of the masked words' logits with their softmax and gradient."""
    return LOGIT_ARRAYS * batch * predictions * config.vocab_size * 4


def inference_bytes(
    config: EncoderConfig, batch: int, length: int, precision: str, blockwise: bool = False
) -> float:
    """Estimates the memory of one device while it computes text vectors without gradients.

    `batch` is the number of rows computed at once, `length` their number of tokens; `blockwise` as
    for `estimate_bytes`. Weights are float32 in any precision.
    """
    parts = count_parts(config)
    weights = WEIGHT_BYTES * (sum(parts.values()) - parts["heads"])
    element = 4 if precision == "float32" else 2
    queries = min(BLOCK_QUERIES, length) if blockwise else length
    sizes = {  # bytes of an array per token
        "hidden": element * config.hidden_size,
        "intermediate": element * config.intermediate_size,
        "scores": 4 * config.num_attention_heads * queries,  # the softmax is in float32
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
    *,
    blockwise: bool = False,
) -> float:
    """Estimates a frozen teacher's memory on a training device (`bert_tf.distillation`).

    `batch` is the number of examples computed at once, `predictions` the masked positions of each
    whose logits are computed, and `relations` the arrays [T, T] of each, one per relation head of
    every relation; both softmaxes and one gradient are kept. Weights are float32.
    """
    network = inference_bytes(config, batch, length, precision, blockwise) - RUNTIME_BYTES
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
    """Formats weights and estimated memory, with and without recomputation, as one line.

    Takes the arguments of `estimate_bytes`; `beside` is the bytes of everything else on the device.
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
