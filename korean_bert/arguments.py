"""Checks the arguments of a model's public methods, with one-line errors."""

import numbers
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

from bert_common.errors import InputError
from finetuning.inputs import Pair

# Iterables that are not an ordered list of values.
UNORDERED = (str, bytes, set, frozenset, dict)


def check_text(value: object, name: str) -> str:
    """Returns a text; raises an `InputError` if it is not a string."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string. Received: {shown(value)}")
    return value


def check_count(value: object, name: str, most: int | None = None) -> int:
    """Returns a whole number of at least 1, which may be a NumPy integer, as an int."""
    if not is_whole(value) or value < 1 or (most is not None and value > most):
        upper = "" if most is None else f" to {most}"
        lower = "at least 1" if most is None else "from 1"
        raise InputError(f"{name} must be a whole number, {lower}{upper}. Received: {shown(value)}")
    return int(value)


def check_layers(layers: Any, count: int) -> tuple[tuple[int, ...], bool]:
    """Returns one or several layers as a tuple of ints, and whether several were asked for.

    `count` is the number of layers, including the embedding output.
    """
    several = not is_whole(layers)
    try:
        chosen = (layers,) if isinstance(layers, UNORDERED) or not several else tuple(layers)
    except TypeError:
        chosen = (layers,)
    if not chosen or not all(is_whole(layer) and -count <= layer < count for layer in chosen):
        raise InputError(
            f"layers must be whole numbers from {-count} to {count - 1}, 0 for the embedding "
            f"output. Received: {shown(layers)}"
        )
    return tuple(map(int, chosen)), several


def check_list(values: Any, what: str) -> list[Any]:
    """Returns the members of an ordered iterable: a list, a tuple, an array or an iterator."""
    # Iterating over a pandas table yields the names of its columns.
    is_list = hasattr(values, "__iter__") and not hasattr(values, "columns")
    is_single = isinstance(values, np.ndarray) and values.ndim == 0
    if isinstance(values, UNORDERED) or not is_list or is_single:
        raise InputError(f"{what} must be in a list. Received: {shown(values)}")
    return list(values)


def as_pairs(texts: str | Iterable[str | Pair]) -> tuple[list[Pair], bool]:
    """Returns a list of (text, second text or None), and whether a single text was given."""
    if isinstance(texts, str):
        return [(texts, None)], True
    pairs = []
    for text in check_list(texts, "texts, or pairs (text, second text),"):
        pair = (text, None) if isinstance(text, str) else text
        is_pair = isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
        if not is_pair or not isinstance(pair[0], str) or not isinstance(pair[1], str | None):
            raise InputError(f"a text must be a string, or a pair of them. Received: {shown(text)}")
        pairs.append(tuple(pair))
    return pairs, False


def is_whole(value: object) -> TypeGuard[int]:
    """Returns True if a value is a whole number; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def shown(value: object) -> str:
    """Formats a value for a message as one shortened line."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 80 else f"{line[:77]}..."
