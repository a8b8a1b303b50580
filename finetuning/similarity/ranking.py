"""Ranks texts by their vectors, and measures the ranks of the relevant texts.

Shapes: Q queries, N texts of a corpus, H hidden, K texts found per query.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError
from finetuning.metrics import largest

# The measures that `rank_measures` returns.
RECALL_AT = (1, 10, 100)
MEASURES = (*(f"recall_at_{k}" for k in RECALL_AT), "mrr_at_10", "ndcg_at_10")

# How many texts are found per query to measure ranks.
DEEPEST = max(RECALL_AT)

# The number of products in memory at once: 64 MiB in float32.
BLOCK_VALUES = 2**24

# The rows of a corpus that are read at once: 64 MiB for vectors of 256 numbers.
BLOCK_ROWS = 2**16


class Found(NamedTuple):
    """The texts nearest to queries, the nearest first."""

    places: np.ndarray  # int64 [Q, K], the numbers of the texts
    scores: np.ndarray  # float32 [Q, K]


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Scales vectors to length 1 in float32, [..., H] -> [..., H]; zero vectors are unchanged.

    Raises:
        InputError: a vector has NaN or infinity, or numbers whose squares are beyond float32.
    """
    with np.errstate(over="ignore"):
        found = np.asarray(vectors, np.float32)
        lengths = np.sqrt(np.einsum("...h,...h->...", found, found))[..., None]  # [..., 1]
    if not np.isfinite(lengths).all():
        raise InputError(
            "vectors must be finite numbers. Received: NaN, infinity or a length beyond float32"
        )
    return found / np.where(lengths > 0, lengths, 1)


def search(queries: np.ndarray, corpus: np.ndarray, top: int, normalize: bool = False) -> Found:
    """Finds exactly the texts with the highest dot products; the first text wins ties.

    Args:
        queries: finite vectors [Q, H].
        corpus: finite vectors [N, H]; a memory map is read block by block.
        top: the number of texts to find per query; K is at most N.
        normalize: whether to scale the vectors of the corpus to length 1.
    """
    top = min(top, len(corpus))
    if not len(queries) or not top:
        return Found(*(np.zeros((len(queries), top), kind) for kind in (np.int64, np.float32)))
    rows = max(top, min(BLOCK_ROWS, len(corpus)))  # of the corpus at once
    count = max(1, BLOCK_VALUES // rows)  # queries at once
    parts = []
    for first in range(0, len(queries), count):
        block, best = queries[first : first + count], None
        for start in range(0, len(corpus), rows):
            vectors = np.asarray(corpus[start : start + rows])
            vectors = unit_vectors(vectors) if normalize else np.asarray(vectors, block.dtype)
            products = block @ vectors.T
            if best is None:
                best = best_of(products, top)
            else:
                _put_better(best, products, start)
        parts.append(best)
    return Found(*map(np.concatenate, zip(*parts, strict=True)))


def best_of(scores: np.ndarray, top: int) -> Found:
    """Returns the highest scores of each row [Q, N], in order; the first wins ties."""
    places = np.empty((len(scores), min(top, scores.shape[1])), np.int64)
    for row, values in enumerate(scores):
        places[row] = largest(values, top)
    return Found(places, np.take_along_axis(scores, places, axis=1))


def _put_better(best: Found, products: np.ndarray, start: int) -> None:
    """Inserts higher products [Q, N] of the texts from number `start` into the best, in place."""
    better = products > best.scores[:, -1:]
    for row in np.flatnonzero(better.any(axis=1)):
        columns = np.flatnonzero(better[row])
        scores = np.concatenate([best.scores[row], products[row, columns]])
        places = np.concatenate([best.places[row], columns + start])
        order = np.argsort(-scores, kind="stable")[: best.scores.shape[1]]
        best.scores[row], best.places[row] = scores[order], places[order]


def rank_measures(
    found: np.ndarray, relevant: Sequence[Mapping[int, float]], own: Sequence[int] = ()
) -> dict[str, float]:
    """Computes measures of rankings, each the mean over the queries.

    recall_at_K: the share of a query's relevant texts among its first K. mrr_at_10: 1 / the rank of
    the first relevant text; 0 if it is not among the first 10. ndcg_at_10, as trec_eval's ndcg_cut:
    the sum of gain / log2(rank + 1) over the first 10, divided by the highest possible sum.

    Args:
        found: the numbers of the texts found for each query, [Q, K], the best first.
        relevant: for each query, the numbers of its relevant texts -> their gains, above 0.
        own: for each query, the number of a text to skip, or -1; empty: nothing is skipped.
    """
    sums: dict[str, float] = dict.fromkeys(MEASURES, 0.0)
    own = own or [-1] * len(relevant)
    for places, gains, passed_over in zip(found.tolist(), relevant, own, strict=True):
        hits = [gains.get(place, 0.0) for place in places if place != passed_over]
        for k in RECALL_AT:
            sums[f"recall_at_{k}"] += sum(gain > 0 for gain in hits[:k]) / len(gains)
        first = next((rank for rank, gain in enumerate(hits[:10], 1) if gain > 0), None)
        sums["mrr_at_10"] += 1 / first if first else 0.0
        ideal = sorted(gains.values(), reverse=True)
        sums["ndcg_at_10"] += _dcg(hits[:10]) / _dcg(ideal[:10])
    return {name: total / max(1, len(relevant)) for name, total in sums.items()}


def _dcg(gains):
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
