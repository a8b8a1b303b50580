"""Reads the values of flags that are lists of numbers."""

from collections.abc import Callable
from typing import Any

from bert_common.errors import InputError


def read_numbers(
    flag_name: str,
    text: str,
    must: str,
    fits: Callable[[tuple[Any, ...]], bool],
    kind: Callable[[str], Any] = int,
    separator: str = ",",
) -> tuple[Any, ...]:
    """Returns the numbers of a separated list.

    Raises an `InputError` if a part is no number or the numbers do not fit; `must` says what they
    must be.
    """
    try:
        numbers = tuple(kind(part) for part in text.split(separator))
    except ValueError:
        numbers = ()
    if not numbers or not fits(numbers):
        raise InputError(f"--{flag_name} must be {must}. Received: {text}")
    return numbers


def ascends(lengths: tuple[int, ...]) -> bool:
    """Returns True if lengths are at least 1, each larger than the one before."""
    return lengths[0] >= 1 and [*lengths] == sorted(set(lengths))
