"""Packs several sequences into one row to reduce padding.

The algorithm is best-fit decreasing (Johnson 1973, Near-Optimal Bin Packing Algorithms): starting
with the longest, each sequence goes into the row with the least sufficient room. At 512 tokens,
where half of Google's layout is padding, about one percent remains.

Shapes: N sequences.
"""

import bisect
from typing import NamedTuple

import numpy as np

# The maximum number of sequences in a row. Full rows hold two or three on average, but labels and
# pooled vectors are computed for every slot of every row.
MAX_SEQUENCES = 8

# `row_predictions` returns a multiple of this, which makes matrix products efficient.
_PREDICTIONS_STEP = 8


class Layout(NamedTuple):
    """Holds the places of sequences, ordered by row and slot."""

    rows: np.ndarray  # int64 [N] the row of each sequence
    slots: np.ndarray  # int64 [N] its number within the row, from 0
    starts: np.ndarray  # int64 [N] the position of its [CLS]
    num_rows: int


def row_predictions(max_seq_length: int, masked_lm_prob: float) -> int:
    """Returns the number of prediction places that a full row needs."""
    needed = max_seq_length * masked_lm_prob
    # One more because the number is rounded for each sequence of a row.
    return -(-int(needed + 1) // _PREDICTIONS_STEP) * _PREDICTIONS_STEP


def pack(
    lengths: np.ndarray,
    predictions: np.ndarray,
    max_seq_length: int,
    max_predictions: int,
    max_sequences: int = MAX_SEQUENCES,
) -> np.ndarray:
    """Chooses a row for each sequence; returns row numbers from 0, int64 [N].

    No sequence may exceed a row, by its `lengths` [N] in tokens or its `predictions` [N].
    """
    rows = np.zeros(len(lengths), np.int64)
    # (room, row) of the rows with predictions and slots left, ascending.
    rooms: list[tuple[int, int]] = []
    left: list[list[int]] = []  # for each row [predictions left, slots left]
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
            left.append([max_predictions, max_sequences])
        rows[index] = row
        left[row][0] -= needed
        left[row][1] -= 1
        if all(left[row]):
            bisect.insort(rooms, (room - length, row))
    return rows


def lay_out(rows: np.ndarray, lengths: np.ndarray) -> Layout:
    """Places sequences of the given lengths [N] one after another in their rows [N].

    The rows must be in ascending order; they are renumbered so that the first one is row 0.
    """
    rows = rows - rows[:1]
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))  # the first sequence of each row
    first = firsts[rows]
    before = np.cumsum(lengths) - lengths
    return Layout(rows, np.arange(len(rows)) - first, before - before[first], len(firsts))
