"""Reads the JSON of a request into the values that an answer needs."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from explorer.errors import RequestError, malformed

# The maximum number of characters in a text. A model with 512 positions takes about a thousand; the
# rest is for the texts of questions, which are read in windows.
LONGEST_TEXT = 10_000

# The maximum number of options for a question: five are usual.
MOST_OPTIONS = 20

# The maximum number of texts to search: reading them takes a second or two, while others wait.
MOST_LINES = 1000

REQUIRED = object()


class Field(NamedTuple):
    """A member of a request's JSON object."""

    read: Callable[[str, Any], Any]  # (name, value) -> the value; raises RequestError
    default: Any = REQUIRED


def text(name: str, value: object) -> str:
    """Returns a string that is not too long and can be encoded in UTF-8."""
    if not isinstance(value, str):
        raise malformed(f"{name} must be a string. Received: {shown(value)}")
    if len(value) > LONGEST_TEXT:
        raise RequestError("text_too_long", most=LONGEST_TEXT, received=len(value))
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError("not_unicode") from None
    return value


def some_text(name: str, value: object) -> str:
    """Returns a string that is not blank."""
    found = text(name, value)
    if not found.strip():
        raise malformed(f"{name} must not be empty. Received: {shown(value)}")
    return found


def text_or_none(name: str, value: object) -> str | None:
    """Returns a string, or None for null."""
    return None if value is None else text(name, value)


def options(name: str, value: object) -> tuple[str, ...]:
    """Returns a list of 2 to `MOST_OPTIONS` strings, none of them blank."""
    found = _some_texts(name, value, 2)
    if len(found) > MOST_OPTIONS:
        raise RequestError("too_many_options", most=MOST_OPTIONS, received=len(found))
    return found


def lines(name: str, value: object) -> tuple[str, ...]:
    """Returns a list of 1 to `MOST_LINES` strings to search, none of them blank."""
    found = _some_texts(name, value, 1)
    if len(found) > MOST_LINES:
        raise RequestError("too_many_lines", most=MOST_LINES, received=len(found))
    return found


def _some_texts(name, value, least):
    if not isinstance(value, list) or len(value) < least:
        raise malformed(
            f"{name} must be a list of {least} or more strings. Received: {shown(value)}"
        )
    return tuple(some_text(name, each) for each in value)


def number(least: int, most: int) -> Callable[[str, Any], int]:
    """Makes a reader of integers from `least` to `most`."""

    def read(name, value):
        if type(value) is not int or not least <= value <= most:
            raise malformed(
                f"{name} must be an integer from {least} to {most}. Received: {shown(value)}"
            )
        return value

    return read


def read_fields(content: bytes, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Returns a value for every field of a request, whose body must be a JSON object of them."""
    try:
        values = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise malformed("the body must be UTF-8. Received: other bytes") from None
    except (ValueError, RecursionError):
        raise malformed(
            f"the body must be JSON. Received: {shown(content.decode('utf-8'))}"
        ) from None
    if not isinstance(values, dict):
        raise malformed(f"the body must be a JSON object. Received: {shown(values)}")
    unknown = [name for name in values if name not in fields]
    if unknown:
        raise malformed(
            f"the fields must be among {', '.join(fields)}. Received: {shown(unknown[0])}"
        )
    missing = [n for n, field in fields.items() if n not in values and field.default is REQUIRED]
    if missing:
        raise malformed(f"{missing[0]} must be given. Received: {shown(list(values))}")
    return {
        name: field.read(name, values[name]) if name in values else field.default
        for name, field in fields.items()
    }


def shown(value: object) -> str:
    """Formats a value for a message as one shortened line."""
    line = repr(value)
    return line if len(line) <= 80 else f"{line[:77]}..."
