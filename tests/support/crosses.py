"""Crosses of parameters, of which the quick run takes as few cases as have every pair of values."""

import itertools

import pytest


def quick_by_pairs(*axes):
    """All combinations of values; those that add no new pair of values of two axes are slow.

    Where three axes matter together, write the cases out instead.
    """
    step = min(map(len, axes))
    numbered = itertools.product(*(enumerate(axis) for axis in axes))
    return [
        pytest.param(
            *(value for _, value in case),
            marks=[pytest.mark.slow] * (sum(place for place, _ in case) % step > 0),
        )
        for case in numbered
    ]
