"""Stores sequences without masks and masks them anew whenever they are read.

Shapes: R records, N sequences, T positions in a record or sequence, S sequence slots per record.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.features import by_piece, by_slot, make_features
from create_pretraining_data.instances.masking import mask_sequences
from create_pretraining_data.instances.packing import Layout
from create_pretraining_data.instances.sequences import Sequences
from create_pretraining_data.records.record_format import RecordFormat

_DTYPES = {"int": np.int32, "float": np.float32}


def make_dynamic_features(
    sequences: Sequences, layout: Layout, record_format: RecordFormat, pad_id: int = 0
) -> dict[str, np.ndarray]:
    """Creates the features [R, values] of records that will be masked when they are read.

    Unless records are packed, the layout has one sequence per record. `pad_id` pads the ids.
    """
    segments = (sequences.borders, sequences.lengths - sequences.borders)  # [N] each
    lengths = np.stack([by_slot(s, layout, record_format) for s in segments], axis=2)  # [R, S, 2]
    features = {
        "input_ids": by_piece(sequences.ids, sequences, layout, record_format, pad_id),
        "word_starts": by_piece(sequences.word_starts, sequences, layout, record_format),
        "segment_lengths": lengths.reshape(layout.num_rows, -1),  # [R, 2 S]
    }
    if record_format.sentence_label:
        features["next_sentence_labels"] = by_slot(sequences.labels, layout, record_format)
    return features


def mask_records(
    stored: Mapping[str, np.ndarray], record_format: RecordFormat, keys: np.ndarray
) -> dict[str, np.ndarray]:
    """Masks records; the same records and keys always get the same masks.

    Args:
        stored: the features of any records, from `make_dynamic_features`; a record may be empty.
        keys: uint64 [R], for `counter_based_random`.

    Returns:
        The features [R, values] of `record_format.with_masks()`.
    """
    rules = record_format.masking
    assert rules is not None  # otherwise the records would already be masked
    sequences, layout = _read_sequences(stored, record_format)
    sequence_keys = derive_keys(keys[layout.rows], layout.slots)  # [N]
    masked = mask_sequences(sequences, rules, sequence_keys)
    features = make_features(sequences, masked, layout, record_format.with_masks())
    # The padding of the stored records is kept.
    ids = np.where(features["input_mask"], features["input_ids"], stored["input_ids"])
    return {**features, "input_ids": ids}


def draw_masks(
    stored: Mapping[str, np.ndarray],
    record_positions: np.ndarray,
    record_format: RecordFormat,
    seed: int,
    names: Sequence[str],
) -> list[np.ndarray]:
    """Masks records, given their positions in the training order, int64 [R].

    A mask depends only on the seed and the position, so it differs from epoch to epoch but not
    with the number of devices or processes.

    Returns:
        The features in `names`, as arrays [R, values], int32 or float32.
    """
    keys = derive_keys(derive_keys(np.uint64(seed), 0), record_positions)  # [R]
    features = mask_records(stored, record_format, keys)
    kinds = record_format.with_masks().features()
    return [features[name].astype(_DTYPES[kinds[name][1]], copy=False) for name in names]


def _read_sequences(stored, record_format):
    """Inverts `make_dynamic_features`; returns `Sequences` and their `Layout`."""
    num_rows = len(stored["input_ids"])
    lengths = stored["segment_lengths"].reshape(num_rows, -1, 2).astype(np.int64)  # [R, S, 2]
    present = lengths[:, :, 0] > 0  # [R, S]
    if not record_format.packed_sequences:
        present[:] = True  # one sequence per record, even if it is empty
    rows, slots = np.nonzero(present)  # [N]
    first, second = lengths[rows, slots].T
    total = lengths.sum(axis=2)  # [R, S]
    starts = (np.cumsum(total, axis=1) - total)[rows, slots]  # [N]
    position = np.arange(record_format.max_seq_length)
    inside = position < (first + second)[:, None]  # [N, T]
    values = [stored[name] for name in ("input_ids", "word_starts")]  # [R, T]
    if record_format.packed_sequences:
        source = np.where(inside, starts[:, None] + position, 0)
        values = [value[rows[:, None], source] for value in values]  # [N, T]
    ids, word_starts = (np.where(inside, value, 0) for value in values)
    labels = np.zeros(len(rows), np.int64)
    if record_format.sentence_label:
        labels = stored["next_sentence_labels"][rows, slots]
    sequences = Sequences(ids, word_starts.astype(bool), first + second, first, labels)
    return sequences, Layout(rows, slots, starts, num_rows)
