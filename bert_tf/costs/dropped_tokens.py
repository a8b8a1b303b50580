"""Counts the tokens that each block call computes if tokens skip the middle layers.

Legend: T tokens of a row, K kept tokens, P predictions, S sequences of a packed row.
"""

import math

# The minimum number of a model's layers: one short layer, and the last one.
LEAST_CALLS = 2


def first_short_call(calls: int) -> int:
    """Returns the index of the first call that computes only kept tokens; the last call is full.

    In a model of twelve layers it is the sixth layer. It attends from the kept tokens to all
    tokens; the calls after it see only the kept tokens.
    """
    return max(calls // 2 - 1, 0)


def kept_tokens(length: int, share: float, predictions: int, sequences: int = 1) -> int:
    """Returns K, the number of kept tokens in a row of `length` if `share` of them is dropped.

    All predictions are kept, as are one [CLS] and two [SEP] per sequence.
    """
    kept = length - math.floor(length * share)
    return min(length, max(kept, predictions + 3 * sequences))


def lengths_of_calls(
    calls: int, length: int, share: float, predictions: int, sequences: int = 1
) -> list[tuple[int, int]]:
    """Returns (tokens read, tokens computed) for each block call except the last.

    `calls` includes the last call; the other arguments are as for `kept_tokens`.
    """
    kept, first = kept_tokens(length, share, predictions, sequences), first_short_call(calls)
    whole, reading, short = (length, length), (length, kept), (kept, kept)
    return [whole if i < first else reading if i == first else short for i in range(calls - 1)]
