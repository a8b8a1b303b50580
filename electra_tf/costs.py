"""Estimates the cost of training both ELECTRA networks, without Keras.

Legend: T tokens in a row, P predictions, H hidden, G the generator's width, E embedding,
V vocabulary.
"""

from typing import Any

from bert_tf import memory_estimate
from bert_tf.costs.flops import TRAINING_PASSES, block_flops
from electra_tf.config import ElectraConfig


def count_both(config: ElectraConfig) -> dict[str, int]:
    """Counts weights as `memory_estimate.count_parts` does, for both networks on one table."""
    own, generator = map(memory_estimate.count_parts, (config, config.generator))
    h, g, e = config.hidden_size, config.generator.hidden_size, config.embedding_size
    heads = (h * h + h) + (h + 1) + (g * e + e + 2 * e + config.vocab_size)
    encoders = {name: own[name] + generator[name] for name in ("projection", "blocks")}
    return {**own, **encoders, "heads": heads}


def count_weights(config: ElectraConfig) -> int:
    """Counts the weights of a `ReplacedTokensModel`, whose networks share embeddings."""
    return sum(count_both(config).values())


def training_flops(config: ElectraConfig, length: int, predictions: int) -> int:
    """Counts a row's operations, forward and backward, as `bert_tf.costs` does.

    The generator's last block runs at the P masked positions; the discriminator's runs at all T.
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


def estimate_bytes(config: ElectraConfig, *sizes: Any, **options: Any) -> float:
    """Calls `bert_tf.memory_estimate.estimate_bytes` for both networks."""
    options.update(networks=(config, config.generator), weights=count_weights(config))
    return memory_estimate.estimate_bytes(config, *sizes, **options)


def memory_line(config: ElectraConfig, *sizes: Any, **options: Any) -> str:
    """Calls `bert_tf.memory_estimate.memory_line` for both networks."""
    options.update(networks=(config, config.generator), weights=count_weights(config))
    return memory_estimate.memory_line(config, *sizes, **options)
