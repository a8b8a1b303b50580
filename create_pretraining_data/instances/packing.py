"""Puts several sequences into one row, so that few of its positions stay empty.

Best fit, the longest first (Johnson 1973, Near-Optimal Bin Packing Algorithms): a sequence goes
into the row with the least room that has enough of it. At 512 pieces, where half of Google's
layout is padding, about a hundredth stays empty.

Legend: N sequences, R rows, T positions of a row, P places for predictions of a row, S places for
sequences of a row, C pieces or predictions of all sequences.
"""

import bisect
from typing import NamedTuple

import numpy as np

# Sequences of a row at most. Rows that are full hold two or three on average; the labels and
# pooled vectors of so many places must be computed for every row.
MOST_SEQUENCES = 8

# A multiple of it is what `row_predictions` says, for the sake of matrix products.
_PREDICTIONS_STEP = 8


class Layout(NamedTuple):
    """Where sequences stand; they are in the order of their rows, within a row in that of slots."""

    rows: np.ndarray  # int64 [N] which row
    slots: np.ndarray  # int64 [N] which of the row's sequences, from 0
    starts: np.ndarray  # int64 [N] the position of its [CLS]
    number: int  # of rows


def row_predictions(max_seq_length, masked_lm_prob):
    """Places for predictions that full rows need."""
    needed = max_seq_length * masked_lm_prob
    # One more: each of a row's sequences rounds its number for itself.
    return -(-int(needed + 1) // _PREDICTIONS_STEP) * _PREDICTIONS_STEP


def pack(lengths, predictions, max_seq_length, max_predictions, most=MOST_SEQUENCES):
    """Chooses a row for each sequence.

    Args:
        lengths: [N] pieces of each, at most `max_seq_length`.
        predictions: [N] places that each needs, at most `max_predictions`.
        max_seq_length: positions of a row.
        max_predictions: places for predictions of a row.
        most: sequences of a row.

    Returns:
        int64 [N], numbers of rows from 0 on.
    """
    rows = np.zeros(len(lengths), np.int64)
    rooms = []  # the rows that are neither full nor out of places: (room, row), ascending
    left = []  # of each row [places for predictions, for sequences]
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
    """The places of sequences that are in the order of their rows.

    Args:
        rows: [N] which row, ascending; counted from the first one on.
        lengths: [N] pieces of each.
    """
    rows = rows - rows[:1]
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))  # the first sequence of each row
    first = firsts[rows]
    before = np.cumsum(lengths) - lengths
    return Layout(rows, np.arange(len(rows)) - first, before - before[first], len(firsts))


def make_packed_features(sequences, masked, layout, record_format, pad_id=0):
    """Lays sequences into rows.

    Args:
        sequences: `Sequences`.
        masked: the same sequences as `Masked`.
        layout: their `Layout`.
        record_format: a `RecordFormat` of packed rows.
        pad_id: what stands after the pieces.

    Returns:
        A dict from feature name to an array [R, values of the feature].
    """
    position = np.arange(sequences.ids.shape[1])
    which, inside = np.nonzero(position < sequences.lengths[:, None])  # [C]
    row, column = layout.rows[which], layout.starts[which] + inside

    def spread(values, empty=0):
        table = np.full((layout.number, record_format.max_seq_length), empty, np.int32)  # [R, T]
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
    """A number of each sequence [N] -> [R, S], 0 where there is no sequence."""
    table = np.zeros((layout.number, slots), np.int64)  # [R, S]
    table[layout.rows, layout.slots] = values
    return table


def _predictions(masked, layout, record_format):
    """The predictions of all sequences of a row, one after the other."""
    table = np.zeros((3, layout.number, record_format.max_predictions_per_seq), np.int32)
    which, place = np.nonzero(np.arange(masked.labels.shape[1]) < masked.counts[:, None])  # [C]
    row = layout.rows[which]
    of_row = np.bincount(row, minlength=layout.number)
    rank = np.arange(len(row)) - (np.cumsum(of_row) - of_row)[row]
    table[0, row, rank] = masked.positions[which, place] + layout.starts[which]
    table[1, row, rank] = masked.labels[which, place]
    table[2, row, rank] = 1
    names = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")  # [R, P] each
    return dict(zip(names, table, strict=True))
