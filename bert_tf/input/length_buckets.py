"""Batches records of similar length, so that batches can be cut to that length.

A batch in the global order is as long as its longest record. Here, consecutive batches form a
window, whose records are grouped by the boundary that each fits into, and then the window's batches
are shuffled. Every record comes as often as before, none is delayed by more than a window, and a
run can resume at any step. Records of one boundary stay mixed, as sorting them by exact length
would not save padding, but cost accuracy in fine-tuning (docs/benchmarks.md, "Fine-tuning").

Shapes: G records of a global batch, W batches of a window, T positions.
"""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from create_pretraining_data.records.reader import parsing_spec
from create_pretraining_data.records.record_format import RecordFormat

# Batches per window. With 16 batches and four boundaries, at most four batches are longer than
# necessary. 16 batches of 256 rows of 512 take 20 MB.
WINDOW = 16

# Features whose last axis is positions; rows of packed sequences are not cut.
POSITION_FEATURES = (
    "input_ids", "input_mask", "segment_ids", "token_label_ids", "token_label_weights", "p_mask",
)  # fmt: skip

# The key of a batch's boundary number, stored with the batch's features.
BUCKET = "bucket"

# The floating-point operations that a device could do while XLA compiles a layer for an additional
# length, estimated from two cores at 0.2 TFLOP/s for 2 s and a GPU at 40 TFLOP/s for 3 s.
COMPILING = {"CPU": 4e11, "GPU": 1.2e14}


def compilation_cost_in_positions(hidden_size: int, rows: int, device: str) -> float:
    """Returns how many positions longer one batch could be in the time of compiling a length.

    `rows` is a batch's number of rows on all devices, `device` a key of `COMPILING`. Compile time
    and run time both scale with the number of layers, so it cancels out, both for a forward pass
    and for a training step.
    """
    # Forward and backward take 6 operations per weight, and a layer has 12 H^2 weights.
    return COMPILING[device] / (72 * hidden_size**2 * rows)


def sort_windows(
    windows: tf.data.Dataset,
    record_format: RecordFormat,
    batch_size: int,
    boundaries: Sequence[int],
    seed: int,
) -> tf.data.Dataset:
    """Cuts records into batches, in windows sorted by boundary.

    Args:
        windows: an endless dataset of (the records' positions in the global order [W * G],
            serialized records [W * G]).
        batch_size: G.
        boundaries: the allowed lengths of batches, ascending, ending with the records' length.
        seed: determines the order of a window's batches, together with the window's position.

    Returns:
        A dataset of (record_positions [G], records [G], the batch's boundary number).
    """
    allowed = tf.constant(boundaries, tf.int64)
    name = "input_mask" if record_format.masking is None else "segment_lengths"
    spec = {name: parsing_spec(record_format)[name]}

    def group(record_positions, records):
        lengths = tf.reduce_sum(tf.io.parse_example(records, spec)[name], axis=1)  # [W * G]
        by_boundary = tf.argsort(tf.searchsorted(allowed, lengths), stable=True)
        batches = tf.reshape(by_boundary, [WINDOW, batch_size])  # [W, G]
        seeds = tf.stack([tf.constant(seed, tf.int64), record_positions[0]])
        order = tf.argsort(tf.random.stateless_uniform([WINDOW], seeds), stable=True)
        batches = tf.gather(batches, order)
        longest = tf.reduce_max(tf.gather(lengths, batches), axis=1)  # [W]
        buckets = tf.searchsorted(allowed, longest)
        return tf.gather(record_positions, batches), tf.gather(records, batches), buckets

    return windows.map(group, num_parallel_calls=2, deterministic=True).unbatch()


def cut(features: Mapping[str, tf.Tensor], length: int | None) -> dict[str, tf.Tensor]:
    """Cuts features [B, ...] to `length` positions; returns them whole if it is None."""
    return {
        # [B, T] -> [B, length]
        name: value[..., :length] if name in POSITION_FEATURES else value
        for name, value in features.items()
    }
