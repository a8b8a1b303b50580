"""An untrained rule for the order of two segments: neighbouring passages have words in common."""

import collections
import math


class OverlapRule:
    """Counts the pieces shared where the segments meet, less those where they would, if swapped.

    These are the end of the first segment and the start of the second, and the end of the second
    and the start of the first, each as long as half of the shorter segment. A piece is weighted by
    the logarithm of its inverse row frequency (IDF).

    Args:
        pairs: the rows that frequencies are counted on: pairs of sequences of ids.
    """

    def __init__(self, pairs):
        self._count = len(pairs)
        self._holders = collections.Counter()  # piece -> the rows that have it
        for first, second in pairs:
            self._holders.update({*map(int, first), *map(int, second)})

    def score(self, first, second):
        """The score of a row of `pairs`: above 0 for "in order", below 0 for "swapped"."""
        return self._shared(first, second) - self._shared(second, first)

    def _shared(self, ending, beginning):
        half = (min(len(ending), len(beginning)) + 1) // 2
        both = {*map(int, ending[-half:])} & {*map(int, beginning[:half])}
        return sum(math.log(self._count / self._holders[piece]) for piece in sorted(both))
