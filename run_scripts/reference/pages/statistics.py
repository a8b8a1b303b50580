"""Compares the scores of runs that differ in their seeds."""

import statistics
from typing import NamedTuple

from finetuning.metrics import imported

# Parts of a score's name; of all others a higher one is better.
LOWER_IS_BETTER = ("loss", "bits", "seconds")

# Of twenty columns whose variants are all equal, one calls some two of them different.
SIGNIFICANCE = 1 / 20


class Sample(NamedTuple):
    """The scores of the same run with several seeds."""

    mean: float
    deviation: float | None  # of a single score, from n - 1 degrees of freedom; None for one seed
    scores: tuple


def sample(scores):
    """The `Sample` of a list of scores; None if it is empty or one of them is not defined."""
    if not scores or None in scores:
        return None
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return Sample(statistics.fmean(scores), deviation, tuple(scores))


def lower_is_better(score):
    """Whether a score of this name is better the lower it is."""
    return any(part in score for part in LOWER_IS_BETTER)


def chances(samples):
    """How likely such a difference is between variants that are equal, for all pairs: [V, V].

    Tukey's honestly significant difference, with Kramer's extension to unequal counts: the spread
    of the seeds is taken as the same for all variants, and the number of pairs is accounted for.

    Args:
        samples: V `Sample`s of at least two scores each.
    """
    if not any(each.deviation for each in samples):  # no spread at all: nothing to divide by
        return [[float(one.mean == other.mean) for other in samples] for one in samples]
    return imported("scipy.stats").tukey_hsd(*(each.scores for each in samples)).pvalue


def least_difference(replicates):
    """The smallest difference of two models that their seeds of pre-training do not explain.

    Student's t for the difference of two models, each pre-trained once, whose variance is known
    from the replicates alone.

    Args:
        replicates: the `Sample` of at least two models that differ in that seed alone.
    """
    freedom = len(replicates.scores) - 1
    quantile = imported("scipy.stats").t.ppf(1 - SIGNIFICANCE / 2, freedom)
    return float(quantile) * 2**0.5 * replicates.deviation


class Ranking(NamedTuple):
    """What can be said of the variants of a question on one task."""

    best: str
    not_told_apart: tuple  # variants whose difference from the best may be chance
    worse: tuple  # those whose difference is more than that


def rank(samples, score, least=0.0):
    """The `Ranking` of variants; None where nothing can be said.

    Nothing can be said of fewer than two variants with several seeds each.

    Args:
        samples: a dict variant -> `Sample`.
        score: its name.
        least: the smallest difference that counts, as `least_difference` finds it.
    """
    samples = {name: each for name, each in samples.items() if each and len(each.scores) > 1}
    if len(samples) < 2:
        return None
    sign = -1 if lower_is_better(score) else 1
    names = list(samples)
    best = max(names, key=lambda name: sign * samples[name].mean)
    of_best = chances(list(samples.values()))[names.index(best)]
    worse = tuple(
        name
        for name, chance in zip(names, of_best, strict=True)
        if chance < SIGNIFICANCE and abs(samples[best].mean - samples[name].mean) >= least
    )
    return Ranking(best, tuple(name for name in names if name not in (best, *worse)), worse)
