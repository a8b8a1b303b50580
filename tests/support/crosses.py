"""Crosses of parameters, of which the quick run takes as few cases as have every pair of values."""

import itertools

import pytest


def slow(*values, **options):
    """A case of `pytest.mark.parametrize` that only the slow run has; `options` of its `param`."""
    return pytest.param(*values, **options, marks=pytest.mark.slow)


def but_slow(cases, quick):
    """The cases, of which those that are not in `quick` are slow; a tuple holds several values."""
    return [
        case if case in quick else slow(*case) if isinstance(case, tuple) else slow(case)
        for case in cases
    ]


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
