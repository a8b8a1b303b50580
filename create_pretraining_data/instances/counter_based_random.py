"""Generates random numbers that depend only on a key and a counter.

The masks of a sequence must not depend on the other sequences processed with it, nor on its batch,
row, worker or device. These generators therefore have no state.

The numbers come from SplitMix64 (Steele, Lea, Flood 2014, Fast Splittable Pseudorandom Number
Generators): the key is its state, and the counter is the number of skipped steps.
"""

import numpy as np
from numpy.typing import ArrayLike

# SplitMix64's increment, and the two factors of its finalizer.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _bits(keys, counters):
    """Returns 64 random bits, uint64, per key and counter, which are broadcast together."""
    steps = np.asarray(counters).astype(np.uint64) + np.uint64(1)
    bits = np.asarray(keys, np.uint64) + steps * _STEP
    bits ^= bits >> np.uint64(30)  # in place, to avoid temporary arrays
    bits *= _FACTORS[0]
    bits ^= bits >> np.uint64(27)
    bits *= _FACTORS[1]
    bits ^= bits >> np.uint64(31)
    return bits


def derive_keys(keys: ArrayLike, numbers: ArrayLike) -> np.ndarray:
    """Derives keys, uint64, that are independent of the given keys and of each other.

    The numbers, non-negative integers, are broadcast with the keys, which have any shape.
    """
    with np.errstate(over="ignore"):  # overflow is intended, but NumPy warns about it for scalars
        return _bits(_bits(keys, numbers), 0)


def uniform(keys: ArrayLike, counters: ArrayLike) -> np.ndarray:
    """Draws random numbers in [0, 1), float64; broadcasts as `derive_keys` does."""
    with np.errstate(over="ignore"):
        return (_bits(keys, counters) >> np.uint64(11)) * 2.0**-53  # the precision of float64
