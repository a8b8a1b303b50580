"""Checks and describes what flags declare of other flags: which they need, which they exclude."""

import dataclasses
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from run_scripts.flags.declaration import names_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_OR = " or "


def full_help(field: dataclasses.Field[Any]) -> str:
    """Returns the help of a flag, followed by the other flags that it needs or excludes."""
    sentences = [field.metadata["help"]]
    if needs := field.metadata["needs"]:
        sentences.append(f"Needs {' and '.join(map(_written, needs))}.")
    if not_with := field.metadata["not_with"]:
        sentences.append(f"Not with {' or '.join(map(_written, not_with))}.")
    return " ".join(sentences)


def check_relations(given: "DataclassInstance", meant: "DataclassInstance") -> None:
    """Raises an `InputError` for a flag that is refused, or lacks or excludes another flag.

    `meant` are the `given` flags after `as_meant`, which may turn on what other flags need.
    """
    for field in dataclasses.fields(given):
        if not _holds(given, field.name):
            continue
        received = f"Received: {_with_value(given, field.name)}"
        if field.metadata["refused"]:
            must = field.metadata["help"].replace("Must", "must", 1)
            raise InputError(f"--{field.name} {must} {received}")
        for other in field.metadata["needs"]:
            if not any(_holds(meant, one) for one in other.split(_OR)):
                it = "either" if _OR in other else "it"
                raise InputError(f"--{field.name} needs {_written(other)}. {received} without {it}")
        for other in field.metadata["not_with"]:
            if _holds(given, other):
                both = f"{received} and {_with_value(given, other.partition('=')[0])}"
                raise InputError(f"--{field.name} and --{other}: only one may be given. {both}")


def without_effect(values: "DataclassInstance") -> list[str]:
    """Returns the names of the given flags that have no effect."""
    return [name for name in names_of(values, "no_effect") if _holds(values, name)]


def _holds(values, condition):
    """Returns True if "flag" has another value than its default, or "flag=value" this value."""
    name, _, wanted = condition.partition("=")
    value = getattr(values, name)
    if wanted:
        return value == wanted
    (default,) = (field.default for field in dataclasses.fields(values) if field.name == name)
    return value is not False and value not in (None, "", default)


def _written(condition):
    """Returns an element of `needs` or `not_with` as it is written on a command line."""
    return _OR.join(f"--{one}" for one in condition.split(_OR))


def _with_value(values, name):
    """Returns a flag with its value as it is written on a command line."""
    value = getattr(values, name)
    return f"--{name}" if value is True else f"--{name}={value}"
