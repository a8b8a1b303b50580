"""Random numbers that a key and a place decide, whatever else is drawn.

A sequence's masks must not depend on which others are worked on beside it: not on the batch, the
row, the worker or the device that it falls to. So nothing here has a state that moves on.

The numbers are those of SplitMix64 (Steele, Lea, Flood 2014, Fast Splittable Pseudorandom Number
Generators): the key is its state, the place how many steps are left out.
"""

import numpy as np

# What SplitMix64 adds at each step, and the two factors of its finalizer.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _bits(keys, places):
    """64 random bits for each key and place, uint64, the two broadcast together."""
    bits = (
        np.asarray(keys, np.uint64) + (np.asarray(places).astype(np.uint64) + np.uint64(1)) * _STEP
    )
    bits = (bits ^ (bits >> np.uint64(30))) * _FACTORS[0]
    bits = (bits ^ (bits >> np.uint64(27))) * _FACTORS[1]
    return bits ^ (bits >> np.uint64(31))


def derive_keys(keys, numbers):
    """Other keys, which have nothing to do with these or with one another.

    Args:
        keys: uint64, of any shape.
        numbers: whole numbers from 0, which are broadcast with the keys.

    Returns:
        uint64 of the common shape.
    """
    with np.errstate(over="ignore"):  # it wraps, and NumPy says so of single numbers
        return _bits(_bits(keys, numbers), 0)


def uniform(keys, places):
    """Random numbers in [0, 1), float64.

    Args:
        keys: uint64, of any shape.
        places: whole numbers from 0, which are broadcast with the keys.
    """
    with np.errstate(over="ignore"):
        return (_bits(keys, places) >> np.uint64(11)) * 2.0**-53  # as many bits as a float64 has
