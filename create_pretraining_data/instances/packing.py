"""Packs several sequences into one row, so that little of it is padding.

By best-fit decreasing (Johnson 1973, Near-Optimal Bin Packing Algorithms): a sequence goes into the
row with the least sufficient room, the longest sequence first. At 512 pieces, where half of
Google's layout is padding, about one percent remains.

Legend: N sequences, R rows, T positions of a row, P places for predictions in a row, S slots for
sequences in a row, C pieces or predictions of all sequences.
"""

import bisect
from typing import NamedTuple

import numpy as np

# The maximum number of sequences in a row. Full rows hold two or three on average; labels and
# pooled vectors are computed for every slot of every row.
MOST_SEQUENCES = 8

# `row_predictions` returns a multiple of this, which suits matrix products.
_PREDICTIONS_STEP = 8


class Layout(NamedTuple):
    """The places of sequences, in the order of rows and slots."""

    rows: np.ndarray  # int64 [N] the row of each sequence
    slots: np.ndarray  # int64 [N] its number within the row, from 0
    starts: np.ndarray  # int64 [N] the position of its [CLS]
    num_rows: int


def row_predictions(max_seq_length, masked_lm_prob):
    """The number of places for predictions that full rows need."""
    needed = max_seq_length * masked_lm_prob
    # One more, as the number is rounded for each of a row's sequences.
    return -(-int(needed + 1) // _PREDICTIONS_STEP) * _PREDICTIONS_STEP


def pack(lengths, predictions, max_seq_length, max_predictions, most=MOST_SEQUENCES):
    """Chooses a row for each sequence.

    Args:
        lengths: [N], the pieces of each sequence, at most `max_seq_length`.
        predictions: [N], the predictions of each sequence, at most `max_predictions`.
        max_seq_length: the number of positions in a row.
        max_predictions: the number of places for predictions in a row.
        most: the maximum number of sequences in a row.

    Returns:
        int64 [N], row numbers from 0 on.
    """
    rows = np.zeros(len(lengths), np.int64)
    rooms = []  # (room, row) of the rows with room, predictions and slots left, ascending
    left = []  # for each row [predictions left, slots left]
    lengths, predictions = np.asarray(lengths), np.asarray(predictions).tolist()
    for index in np.argsort(-lengths, kind="stable").tolist():
        length, needed = int(lengths[index]), predictions[index]
        at = bisect.bisect_left(rooms, (length, -1))
        while at < len(rooms) and left[rooms[at][1]][0] < needed:
            at += 1
        if at < len(rooms):
            room, row = rooms.pop(at)
        else:
            room, row = max_seq_length, len(left)
            left.append([max_predictions, most])
        rows[index] = row
        left[row][0] -= needed
        left[row][1] -= 1
        if all(left[row]):
            bisect.insort(rooms, (room - length, row))
    return rows


def lay_out(rows, lengths):
    """Places sequences one after another in their rows.

    Args:
        rows: [N], the row of each sequence, ascending; the first one becomes row 0.
        lengths: [N], the pieces of each sequence.

    Returns:
        A `Layout`.
    """
    rows = rows - rows[:1]
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))  # the first sequence of each row
    first = firsts[rows]
    before = np.cumsum(lengths) - lengths
    return Layout(rows, np.arange(len(rows)) - first, before - before[first], len(firsts))


def make_packed_features(sequences, masked, layout, record_format, pad_id=0):
    """Creates the features of packed rows.

    Args:
        sequences: `Sequences`.
        masked: the same sequences as `MaskedSequences`.
        layout: their `Layout`.
        record_format: a `RecordFormat` of packed rows.
        pad_id: the id that pads the ids.

    Returns:
        A dict from feature name to an array [R, values of the feature].
    """
    position = np.arange(sequences.ids.shape[1])
    which, inside = np.nonzero(position < sequences.lengths[:, None])  # [C]
    row, column = layout.rows[which], layout.starts[which] + inside

    def spread(values, empty=0):
        table = np.full((layout.num_rows, record_format.max_seq_length), empty, np.int32)  # [R, T]
        table[row, column] = values
        return table

    borders, slots = sequences.borders[which], record_format.packed_sequences
    features = {
        "input_ids": spread(masked.ids[which, inside], pad_id),
        "input_mask": spread(1),
        "segment_ids": spread(inside >= borders),
        "segment_index": spread(layout.slots[which] + 1),
        "position_ids": spread(inside),
        **_predictions(masked, layout, record_format),
    }
    features["sequence_starts"] = by_slot(layout.starts, layout, slots)
    if record_format.sentence_label:
        features["next_sentence_labels"] = by_slot(sequences.labels, layout, slots)
        features["next_sentence_weights"] = by_slot(1, layout, slots)
    if record_format.token_boundary:
        special = (inside == 0) | (inside == borders - 1) | (inside == sequences.lengths[which] - 1)
        features["token_boundary"] = spread(sequences.word_starts[which, inside] | special)
    return features


def by_slot(values, layout, slots):
    """Arranges values of sequences [N] by slot, [R, S], with 0 in empty slots."""
    table = np.zeros((layout.num_rows, slots), np.int64)  # [R, S]
    table[layout.rows, layout.slots] = values
    return table


def _predictions(masked, layout, record_format):
    """Concatenates the predictions of the sequences in each row."""
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
