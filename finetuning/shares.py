"""Draws each batch of a training from one of several sources of examples, by their shares.

A draw depends on the seed and the batch's number alone, so that a run resumes at any batch.

Shapes: N examples.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

# Draws that are made at a time; how often each source came in all blocks before is kept.
BLOCK = 1024

# What sets the draws apart from the other uses of a seed in `finetuning.examples`.
_STREAM = 2


class Place(NamedTuple):
    """Where a batch stands."""

    source: int  # whose batch it is
    number: int  # how many batches of this source came before


@dataclasses.dataclass(frozen=True, eq=False)
class Sources:
    """The sources of a training's examples."""

    numbers: np.ndarray  # the source of each example, from 0 on, int [N]
    shares: tuple[float, ...]  # the share of each source in the batches; they add up to 1

    @functools.cached_property
    def members(self) -> list[np.ndarray]:
        """The examples of each source, by their numbers."""
        return [np.flatnonzero(self.numbers == number) for number in range(len(self.shares))]

    def place(self, seed: int, batch: int) -> Place:
        """The `Place` of a batch, by how many batches came before."""
        block, row = divmod(batch, BLOCK)
        drawn = _draws(seed, self.shares, block)
        source = int(drawn[row])
        before = sum(_counts(seed, self.shares, earlier)[source] for earlier in range(block))
        return Place(source, before + int(np.count_nonzero(drawn[:row] == source)))


@functools.lru_cache(maxsize=2)
def _draws(seed, shares, block):
    """The sources of a block of batches, [BLOCK]."""
    draw = np.random.default_rng([seed, _STREAM, block])
    return draw.choice(len(shares), BLOCK, p=np.array(shares) / sum(shares))


@functools.cache
def _counts(seed, shares, block):
    """How many batches of a block each source has."""
    return tuple(np.bincount(_draws(seed, shares, block), minlength=len(shares)).tolist())
