"""What training both networks of an ELECTRA costs: weights, operations, memory; without Keras.

Legend: T tokens of a row, P predictions, H hidden, G the generator's width, E embedding,
V vocabulary.
"""

from typing import Any

from bert_tf.costs.flops import TRAINING_PASSES, block_flops
from bert_tf.memory_estimate import (
    ADAM_SLOTS,
    RUNTIME_BYTES,
    WEIGHT_BYTES,
    count_parts,
    describe,
    kept_bytes,
    logit_bytes,
)
from electra_tf.config import ElectraConfig


def count_both(config: ElectraConfig) -> dict[str, int]:
    """Counts weights as `bert_tf.memory_estimate.count_parts`, of two networks on one table."""
    own, generator = count_parts(config), count_parts(config.generator)
    h, g, e = config.hidden_size, config.generator.hidden_size, config.embedding_size
    heads = (h * h + h) + (h + 1) + (g * e + e + 2 * e + config.vocab_size)
    encoders = {name: own[name] + generator[name] for name in ("projection", "blocks")}
    return {**own, **encoders, "heads": heads}


def count_weights(config: ElectraConfig) -> int:
    """Counts the weights of a `ReplacedTokensModel`: two networks on the same embeddings."""
    return sum(count_both(config).values())


def training_flops(config: ElectraConfig, length: int, predictions: int) -> int:
    """The operations of a forward and a backward pass over one row, counted as in `bert_tf.costs`.

    The generator's last block runs at the P masked positions, the discriminator's at all T.
    """
    generator, e = config.generator, config.embedding_size
    total = block_flops(generator, length, predictions) + block_flops(config, length, length - 1)
    for network in (config, generator):
        total += 2 * length * config.type_vocab_size * e
        if network.hidden_size != e:
            total += 2 * length * e * network.hidden_size
    h, g = config.hidden_size, generator.hidden_size
    total += predictions * (2 * g * e + 2 * e * config.vocab_size) + length * (2 * h * h + 2 * h)
    return TRAINING_PASSES * total


def estimate_bytes(
    config: ElectraConfig,
    batch: int,
    length: int,
    predictions: int,
    precision: str = "float32",
    recompute: str = "none",
    *,
    slots: int = ADAM_SLOTS,
    blockwise: bool = False,
) -> float:
    """The memory of one device while it trains; as `bert_tf.memory_estimate.estimate_bytes`."""
    kept = sum(
        kept_bytes(network, batch, length, precision, recompute, blockwise)
        for network in (config, config.generator)
    )
    weights = WEIGHT_BYTES * count_weights(config)
    training = (2 + slots) * weights + kept + logit_bytes(config, batch, predictions)
    return max(training, (1 + 2 * (1 + slots)) * weights) + RUNTIME_BYTES


def memory_line(
    config: ElectraConfig,
    batch: int,
    length: int,
    predictions: int,
    precision: str,
    recompute: str,
    *,
    beside: float = 0.0,
    **options: Any,
) -> str:
    """Does what `bert_tf.memory_estimate.memory_line` does, for both networks."""
    plain, saving = (
        estimate_bytes(config, batch, length, predictions, precision, kind, **options) + beside
        for kind in ("none", "block")
    )
    return describe(count_weights(config), (plain, saving), (batch, length), recompute)
