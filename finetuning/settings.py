"""Declares the settings that a fine-tuned model's folder records, and parses the lists in them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

# The upper limit of counts; no sequence is as long.
MANY = 1_000_000


class Setting(NamedTuple):
    """A value that a folder records; it has the name of a flag of the task's program."""

    kind: type[str] | type[int] | type[float] | type[bool]  # str, int, float or bool
    least: float | None = None  # of a number
    most: float | None = None
    needed: bool = False  # whether the value is required and may not be null
    default: str | float | None = None  # for a folder that transformers wrote
    # Whether training that starts from such a model uses its value unless a flag gives one.
    inherited: bool = False
    # Whether an evaluation of such a model's folder for transformers uses its value unless a flag
    # gives one; a flag may not change a list.
    evaluated: bool = False
    # The default of encoders that have another; keys are values of `Encoder.defaults`.
    of_encoder: Mapping[str, float] = MappingProxyType({})


def split_names(text: str | None) -> tuple[str, ...]:
    """Returns the names in a comma-separated list; () for None."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def split_numbers(text: str | None) -> tuple[int, ...]:
    """Returns the whole numbers in a comma-separated list; () for None."""
    return tuple(int(part) for part in text.split(",")) if text else ()
