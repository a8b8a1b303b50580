"""Shuffles the records of files in blocks, so that reading can begin at any position.

In each pass, the files are shuffled and dealt to lanes. A block has the next records of every lane
in random order. The start of a block follows from the number of records in each file, so earlier
records need not be read. Everything depends only on the seed and the number of the pass.

Shapes: F files, L lanes, K blocks of a pass, P parts of files, R records of a block.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from create_pretraining_data.instances.counter_based_random import derive_keys, uniform

# The maximum number of records in a block (plus one per lane). A record moves by 0.41 blocks on
# average (root mean square), that is by 20,000 records, as far as with a shuffle buffer of 20,000.
# Two blocks are in memory: 250 MB at 128 tokens, 450 MB at 512 with masks and packing.
BLOCK = 50_000

# The number of places in the files whose records a block mixes.
LANES = 16

# The number of this key derived from the seed; 0 is for dynamic masks (`bert_tf.input.pipeline`).
_ORDER = 1

# The purposes of random numbers within a pass: ordering the files, and ordering each block.
_FILES, _BLOCKS = range(2)


class Lane(NamedTuple):
    """The files that are read one after another in a pass."""

    files: np.ndarray  # int64 [files of the lane]
    ends: np.ndarray  # int64 [files of the lane], the lane's records up to the end of each file
    share: int  # the lane's records in each block; the last blocks may have fewer

    def bounds(self, block: int) -> tuple[int, int]:
        """Returns the start and end of a block in the lane."""
        total = int(self.ends[-1])
        return min(block * self.share, total), min((block + 1) * self.share, total)


class Pass(NamedTuple):
    """One pass over all records."""

    lanes: list[Lane]
    starts: np.ndarray  # int64 [K + 1], the records before each block; the last is their total
    key: np.uint64  # determines the order within the blocks


@dataclasses.dataclass(frozen=True)
class BlockOrder:
    """The endless order of the records of some files, pass after pass."""

    counts: tuple[int, ...]  # the records of each file, [F]; at least 1 each
    seed: int

    @property
    def total(self) -> int:
        """The number of records in a pass."""
        return sum(self.counts)

    def get_pass(self, number: int) -> Pass:
        """Returns the `Pass` with the given number, from 0."""
        return _get_pass(self, int(number))

    def locate(self, position: int) -> tuple[int, int, int]:
        """Returns a position's pass, its block in the pass, and its offset in the block.

        `position` is the number of records before it, from the beginning of the first pass.
        """
        number, rest = divmod(position, self.total)
        starts = self.get_pass(number).starts
        block = int(np.searchsorted(starts, rest, side="right")) - 1
        return number, block, int(rest - starts[block])

    def start(self, number: int, block: int) -> int:
        """Returns the position of a block's first record."""
        return number * self.total + self.get_pass(number).starts[block]

    def places(self, number: int, block: int) -> np.ndarray:
        """Draws the places of a block's records, lane after lane: int64 [R], a permutation."""
        one = self.get_pass(number)
        size = one.starts[block + 1] - one.starts[block]
        key = derive_keys(derive_keys(one.key, _BLOCKS), block)
        return np.argsort(uniform(key, np.arange(size)), kind="stable")

    def parts(self, number: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Lists the parts of files left to read in a pass from the beginning of a block on.

        Returns:
            int64 [P, 3], lane after lane: the file and how many of its records to skip and to read;
            and int64 [L], the end of each lane's parts.
        """
        found = []
        for lane in self.get_pass(number).lanes:
            begin, _ = lane.bounds(block)
            starts = np.concatenate([[0], lane.ends[:-1]])
            skipped = np.clip(begin - starts, 0, lane.ends - starts)
            parts = np.stack([lane.files, skipped, lane.ends - starts - skipped], axis=1)
            found.append(parts[parts[:, 2] > 0])
        return np.concatenate(found), np.cumsum([len(parts) for parts in found])

    def names(self, position: int, count: int) -> list[tuple[int, int]]:
        """Returns (file, number in the file from 1) of `count` records from a position on."""
        number, block, skipped = self.locate(position)
        found = np.zeros((0, 2), np.int64)
        while len(found) < skipped + count:
            found = np.concatenate([found, self._block_names(number, block)])
            block += 1
            if block == len(self.get_pass(number).starts) - 1:
                number, block = number + 1, 0
        return [tuple(name) for name in found[skipped : skipped + count].tolist()]

    def _block_names(self, number, block):
        names = []
        for lane in self.get_pass(number).lanes:
            places = np.arange(*lane.bounds(block))
            which = np.searchsorted(lane.ends, places, side="right")
            starts = np.concatenate([[0], lane.ends[:-1]])
            names.append(np.stack([lane.files[which], places - starts[which] + 1], axis=1))
        names = np.concatenate(names)  # [R, 2]
        ordered = np.empty_like(names)
        ordered[self.places(number, block)] = names
        return ordered


@functools.lru_cache(maxsize=4)
def _get_pass(order, number):
    counts = np.array(order.counts, np.int64)
    key = derive_keys(derive_keys(np.uint64(order.seed), _ORDER), number)
    shuffled = uniform(derive_keys(key, _FILES), np.arange(len(counts)))  # [F]
    files = np.argsort(shuffled, kind="stable")
    blocks = -(-order.total // BLOCK)
    lanes = []
    for first in range(min(LANES, len(files))):
        own = files[first::LANES]
        ends = np.cumsum(counts[own])
        lanes.append(Lane(own, ends, -(-int(ends[-1]) // blocks)))
    totals = np.array([lane.ends[-1] for lane in lanes])  # [L]
    shares = np.array([lane.share for lane in lanes])  # [L]
    starts = np.minimum(np.arange(blocks + 1)[:, None] * shares, totals).sum(axis=1)  # [K + 1]
    # Shares are rounded up, so with millions of blocks the last ones may be empty.
    last = int(np.searchsorted(starts, order.total))
    return Pass(lanes, starts[: last + 1], np.uint64(key))
