"""Declares the values that a fine-tuned model's folder records, with readers of their lists."""

from typing import NamedTuple

# The most of a count: no sequence is as long.
MANY = 1_000_000


class Setting(NamedTuple):
    """A value that a folder records; its name is the flag's of the task's program."""

    kind: type[str] | type[int] | type[float] | type[bool]  # str, int, float or bool
    least: float | None = None  # of a number
    most: float | None = None
    needed: bool = False  # whether the value must be there, and may not be null
    default: str | float | None = None  # of a folder of transformers, which records no settings
    # Whether a training that starts from such a model has its value where no flag gives another.
    inherited: bool = False
    # Whether an evaluation of what transformers has of such a model has its value where no flag
    # gives another; where it is a list, no flag may.
    evaluated: bool = False


def split_names(text: str | None) -> tuple[str, ...]:
    """The names in a list separated by commas; none without a list."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def split_numbers(text: str | None) -> tuple[int, ...]:
    """The whole numbers in a list separated by commas; none without a list."""
    return tuple(int(part) for part in text.split(",")) if text else ()
