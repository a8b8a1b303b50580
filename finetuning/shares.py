"""Draws each training batch from one of several sources of examples, by their shares.

A draw depends only on the seed and the batch's number, so that a run can resume at any batch.

Shapes: N examples.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

# The number of draws made at a time; the counts of each source in earlier blocks are cached.
BLOCK = 1024

# Separates the draws from the other uses of the seed in `finetuning.examples`.
_STREAM = 2


class Place(NamedTuple):
    """The source of a batch and its position among the batches of this source."""

    source: int
    number: int  # the number of earlier batches of this source


@dataclasses.dataclass(frozen=True, eq=False)
class Sources:
    """The sources of a training's examples."""

    numbers: np.ndarray  # the source of each example, from 0 on, int [N]
    shares: tuple[float, ...]  # the share of each source in the batches; they add up to 1

    @functools.cached_property
    def members(self) -> list[np.ndarray]:
        """The indices of the examples of each source."""
        return [np.flatnonzero(self.numbers == number) for number in range(len(self.shares))]

    def place(self, seed: int, batch: int) -> Place:
        """Returns the `Place` of a batch; `batch` is the number of batches before it."""
        block, row = divmod(batch, BLOCK)
        drawn = _draws(seed, self.shares, block)
        source = int(drawn[row])
        before = sum(_counts(seed, self.shares, earlier)[source] for earlier in range(block))
        return Place(source, before + int(np.count_nonzero(drawn[:row] == source)))


@functools.lru_cache(maxsize=2)
def _draws(seed, shares, block):
    """Draws the sources of a block of batches, [BLOCK]."""
    draw = np.random.default_rng([seed, _STREAM, block])
    return draw.choice(len(shares), BLOCK, p=np.array(shares) / sum(shares))


@functools.cache
def _counts(seed, shares, block):
    """Counts the batches of each source in a block."""
    return tuple(np.bincount(_draws(seed, shares, block), minlength=len(shares)).tolist())
