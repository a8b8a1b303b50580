"""Creates the features of records from masked sequences.

Shapes: R records, N sequences, T positions in a record or sequence, P prediction places per record,
S sequence slots per record, C predictions in all sequences.
"""

import functools

import numpy as np
from numpy.typing import ArrayLike

from create_pretraining_data.instances.masking import MaskedSequences
from create_pretraining_data.instances.packing import Layout
from create_pretraining_data.instances.sequences import Sequences
from create_pretraining_data.records.record_format import RecordFormat


def make_features(
    sequences: Sequences,
    masked: MaskedSequences,
    layout: Layout,
    record_format: RecordFormat,
    pad_id: int = 0,
) -> dict[str, np.ndarray]:
    """Creates the features [R, values] of records that store their masks.

    Unless records are packed, the layout has one sequence per record. `pad_id` pads the ids.
    """
    spread = functools.partial(
        by_piece, sequences=sequences, layout=layout, record_format=record_format
    )
    position = np.arange(sequences.ids.shape[1])
    borders, lengths = sequences.borders[:, None], sequences.lengths[:, None]  # [N, 1] each
    features = {
        "input_ids": spread(masked.ids, empty=pad_id),
        "input_mask": spread(True),
        "segment_ids": spread(position >= borders),
        **_predictions(masked, layout, record_format),
    }
    if record_format.packed_sequences:
        features["segment_index"] = spread(layout.slots[:, None] + 1)
        features["position_ids"] = spread(position)
        features["sequence_starts"] = by_slot(layout.starts, layout, record_format)
    if record_format.sentence_label:
        features["next_sentence_labels"] = by_slot(sequences.labels, layout, record_format)
    if record_format.sentence_label and record_format.packed_sequences:
        features["next_sentence_weights"] = by_slot(1, layout, record_format)
    if record_format.token_boundary:
        # 1 at the beginning of words, and at [CLS] and [SEP].
        special = (position == 0) | (position == borders - 1) | (position == lengths - 1)
        features["token_boundary"] = spread(sequences.word_starts | special)
    return features


def by_piece(
    values: ArrayLike,
    sequences: Sequences,
    layout: Layout,
    record_format: RecordFormat,
    empty: int = 0,
) -> np.ndarray:
    """Broadcasts the values of tokens to [N, T] and arranges them by position, int32 [R, T]."""
    in_sequences = np.arange(sequences.ids.shape[1]) < sequences.lengths[:, None]  # [N, T]
    if not record_format.packed_sequences:  # a sequence is a record
        return np.where(in_sequences, values, empty).astype(np.int32)
    table = np.full((layout.num_rows, record_format.max_seq_length), empty, np.int32)  # [R, T]
    filled = np.bincount(layout.rows, sequences.lengths, layout.num_rows)  # [R]
    # Rows are filled from the left, in the order of the sequences.
    in_rows = np.arange(record_format.max_seq_length) < filled[:, None]  # [R, T]
    table[in_rows] = np.broadcast_to(values, in_sequences.shape)[in_sequences]
    return table


def by_slot(values: ArrayLike, layout: Layout, record_format: RecordFormat) -> np.ndarray:
    """Arranges the values of sequences [N] by slot [R, S], with 0 in empty slots."""
    table = np.zeros((layout.num_rows, record_format.packed_sequences or 1), np.int64)  # [R, S]
    table[layout.rows, layout.slots] = values
    return table


def _predictions(masked, layout, record_format):
    """Concatenates the predictions of the sequences in each record."""
    shape = 3, layout.num_rows, record_format.max_predictions_per_seq
    table = np.zeros(shape, np.int32)  # [3, R, P]
    which, place = np.nonzero(np.arange(masked.labels.shape[1]) < masked.counts[:, None])  # [C]
    row = layout.rows[which]
    of_row = np.bincount(row, minlength=layout.num_rows)
    rank = np.arange(len(row)) - (np.cumsum(of_row) - of_row)[row]
    table[0, row, rank] = masked.positions[which, place] + layout.starts[which]
    table[1, row, rank] = masked.labels[which, place]
    table[2, row, rank] = 1
    names = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")  # [R, P] each
    return dict(zip(names, table, strict=True))
