"""Compares the scores of runs that differ in their seeds."""

import math
import statistics
from typing import NamedTuple

# Parts of a score's name; of all others a higher one is better.
LOWER_IS_BETTER = ("loss", "bits", "seconds")

# Differences smaller than this many standard errors are not told from chance: about one in twenty
# would be as large without any cause, if the spread were known; a few seeds only estimate it.
STANDARD_ERRORS = 2


class Sample(NamedTuple):
    """The scores of the same run with several seeds."""

    mean: float
    deviation: float | None  # of a single score, from n - 1 degrees of freedom; None for one seed
    count: int

    @property
    def error(self):
        """The standard error of the mean; None for one seed."""
        return None if self.deviation is None else self.deviation / math.sqrt(self.count)


def sample(scores):
    """The `Sample` of a list of scores; None if it is empty or one of them is not defined."""
    if not scores or None in scores:
        return None
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return Sample(statistics.fmean(scores), deviation, len(scores))


def lower_is_better(score):
    """Whether a score of this name is better the lower it is."""
    return any(part in score for part in LOWER_IS_BETTER)


def is_told_apart(one, other):
    """Whether two `Sample`s differ by at least `STANDARD_ERRORS`; None if one has a single seed."""
    if one.error is None or other.error is None:
        return None
    difference = abs(one.mean - other.mean)
    return 0 < difference >= STANDARD_ERRORS * math.hypot(one.error, other.error)


class Ranking(NamedTuple):
    """What can be said of the variants of a question on one task."""

    best: str
    not_told_apart: tuple  # variants whose difference to the best may be chance
    worse: tuple  # those whose difference is more than that


def rank(samples, score):
    """The `Ranking` of samples, a dict variant -> `Sample`; None where nothing can be said.

    Nothing can be said of fewer than two variants with several seeds each.
    """
    samples = {name: each for name, each in samples.items() if each and each.error is not None}
    if len(samples) < 2:
        return None
    sign = -1 if lower_is_better(score) else 1
    best = max(samples, key=lambda name: sign * samples[name].mean)
    others = [name for name in samples if name != best]
    apart = {name: is_told_apart(samples[best], samples[name]) for name in others}
    return Ranking(
        best,
        tuple(name for name in others if not apart[name]),
        tuple(name for name in others if apart[name]),
    )
