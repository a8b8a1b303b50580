"""Makes batches of random examples for the replicas.

Shapes: B batch, T tokens, P predictions, S sequences of a packed row.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.config import EncoderConfig

if TYPE_CHECKING:
    import tensorflow as tf

SEED = 1


def random_batch(
    config: EncoderConfig, batch: int, length: int, predictions: int
) -> dict[str, np.ndarray]:
    """Makes the features of a global batch, always the same; every other row is half padding."""
    rng = np.random.default_rng(SEED)
    mask = np.ones((batch, length), np.int32)
    mask[::2, length // 2 :] = 0
    return {
        "input_ids": rng.integers(1, config.vocab_size, (batch, length)).astype(np.int32) * mask,
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, (batch, length)).astype(np.int32) * mask,
        "masked_lm_positions": np.tile(np.arange(1, predictions + 1, dtype=np.int32), (batch, 1)),
        "masked_lm_ids": rng.integers(1, config.vocab_size, (batch, predictions)).astype(np.int32),
        "masked_lm_weights": np.ones((batch, predictions), np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1)).astype(np.int32),
        "next_sentence_weights": np.ones(batch, np.float32),
    }


def short_batch(
    config: EncoderConfig, batch: int, length: int, predictions: int
) -> dict[str, np.ndarray]:
    """Makes a `random_batch` whose rows are half padding."""
    features = random_batch(config, batch, length, predictions)
    for name in ("input_ids", "input_mask", "segment_ids"):
        features[name][:, length // 2 :] = 0
    return features


def bucket_batch(
    config: EncoderConfig, batch: int, length: int, predictions: int
) -> dict[str, np.ndarray]:
    """Makes a `short_batch` to be cut to the first of the lengths."""
    from bert_tf.input.length_buckets import BUCKET

    return {**short_batch(config, batch, length, predictions), BUCKET: np.array(0, np.int32)}


def packed_batch(
    config: EncoderConfig, batch: int, length: int, predictions: int
) -> dict[str, np.ndarray]:
    """Makes a `random_batch` with two sequences per row, S = 2, and without padding."""
    features = random_batch(config, batch, length, predictions)
    rng = np.random.default_rng(SEED)
    half = np.arange(length) // (length // 2)  # [T]: 0 or 1
    ids = rng.integers(1, config.vocab_size, (batch, length)).astype(np.int32)

    def all_rows(row):
        return np.tile(np.asarray(row, np.int32), (batch, 1))

    return {
        **features,
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": rng.integers(0, 2, (batch, length)).astype(np.int32),
        "segment_index": all_rows(half + 1),  # [B, T]
        "position_ids": all_rows(np.arange(length) % (length // 2)),  # [B, T]
        "sequence_starts": all_rows([0, length // 2]),  # [B, S]
        # In both sequences.
        "masked_lm_positions": all_rows(1 + np.arange(predictions) * (length // predictions)),
        "next_sentence_labels": rng.integers(0, 2, (batch, 2)).astype(np.int32),  # [B, S]
        "next_sentence_weights": np.ones((batch, 2), np.float32),  # [B, S]
    }


BATCHES = {
    "plain": random_batch,
    "short rows": short_batch,
    "bucket": bucket_batch,
    "packed": packed_batch,
}


def deal(batch: Mapping[str, np.ndarray], strategy: "tf.distribute.Strategy") -> Any:
    """Distributes a global batch in equal parts to the strategy's replicas."""
    import tensorflow as tf

    replicas = strategy.num_replicas_in_sync
    # A single number, the bucket of the batch, goes to all replicas.
    parts = {k: np.split(v, replicas) if np.ndim(v) else [v] * replicas for k, v in batch.items()}
    return strategy.experimental_distribute_values_from_function(
        lambda context: {
            k: tf.constant(v[context.replica_id_in_sync_group]) for k, v in parts.items()
        }
    )
