"""Declares the settings that a fine-tuned model's folder records, and parses the lists in them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

# In which runs with a fine-tuned model something holds of a value that its folder records: in none,
# in those that do not train, or in all.
NEVER, UNTRAINED, ALWAYS = "never", "untrained", "always"


class Setting(NamedTuple):
    """A value that a folder records; it has the name of a flag of the task's program."""

    kind: type[str] | type[int] | type[float] | type[bool]  # str, int, float or bool
    # Of a folder that transformers wrote, and of the flag if `Group.setting` declares it.
    default: str | float | None = None
    # The default of encoders that have another; keys are values of `Encoder.defaults`.
    of_encoder: Mapping[str, float] = MappingProxyType({})
    least: float | None = None  # the lower bound of a number
    choices: tuple[str, ...] = ()  # the allowed texts; () for any
    needed: bool = False  # whether the value is required and may not be null
    # In which runs a flag may differ from the value that this project's training recorded.
    changeable: str = NEVER
    # The values that may replace each other as if `changeable` were `UNTRAINED`.
    alike: tuple[str, ...] = ()
    of_own_files: bool = False  # whether it describes a user's own files
    # In which runs that start from such a model, or evaluate its folder for transformers, its value
    # is used unless a flag gives one. If `UNTRAINED`, a flag may not change a list.
    inherited: str = NEVER


def split_names(text: str | None) -> tuple[str, ...]:
    """Returns the names in a comma-separated list; () for None."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def split_numbers(text: str | None) -> tuple[int, ...]:
    """Returns the whole numbers in a comma-separated list; () for None."""
    return tuple(int(part) for part in text.split(",")) if text else ()
