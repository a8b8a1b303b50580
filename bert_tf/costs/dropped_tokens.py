"""Counts the tokens that each call of a block computes where tokens skip the middle layers.

Legend: T tokens of a row, K kept tokens, P predictions, S sequences of a packed row.
"""

import math

# Layers that a model must have: one that is short, and the last one.
LEAST_CALLS = 2


def first_short_call(calls: int) -> int:
    """The number, from 0, of the first call that computes kept tokens alone; the last one is full.

    Of twelve layers the sixth. It attends from the kept tokens to all; the calls after it know no
    others.
    """
    return max(calls // 2 - 1, 0)


def kept_tokens(length: int, share: float, predictions: int, sequences: int = 1) -> int:
    """How many tokens of a row of `length` are kept, K, where this share of them is dropped.

    All predictions are kept, and [CLS] and two times [SEP] of each of the sequences.
    """
    kept = length - math.floor(length * share)
    return min(length, max(kept, predictions + 3 * sequences))


def lengths_of_calls(
    calls: int, length: int, share: float, predictions: int, sequences: int = 1
) -> list[tuple[int, int]]:
    """For each call of a block but the last: how many tokens it reads, and how many it computes.

    `calls` counts the last one too; the other arguments are as for `kept_tokens`.
    """
    kept, first = kept_tokens(length, share, predictions, sequences), first_short_call(calls)
    whole, reading, short = (length, length), (length, kept), (kept, kept)
    return [whole if i < first else reading if i == first else short for i in range(calls - 1)]
