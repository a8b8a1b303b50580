"""Parses JSON written by other programs: corpora, configurations, data sets."""

import json
import re
from typing import Any

from bert_common.errors import InputError

_SURROGATES = re.compile("[\ud800-\udfff]")


def parse_json(text: str | bytes) -> Any:
    """Parses JSON text and replaces every lone surrogate in it by U+FFFD.

    JSON can express half of a surrogate pair ("\\ud83d", an emoji that was cut in two), but UTF-8
    cannot, so a string that holds one cannot be written to a file. One character replaces one
    character, so offsets into a text stay valid. Text that is not JSON raises a ValueError with
    the reason.
    """
    try:
        return _replace_surrogates(json.loads(text))
    except RecursionError:
        raise ValueError("brackets nested too deeply") from None


def read_json(text: str | bytes, where: str) -> Any:
    """Parses JSON text as `parse_json` does; an InputError names `where`, the file and line."""
    try:
        return parse_json(text)
    except ValueError as error:
        is_of_lines = f"{where}".endswith(".json") and f"{error}".startswith("Extra data")
        form = " (lines of objects are .jsonl)" if is_of_lines else ""
        raise InputError(f"{where} must hold JSON{form}. Received: {error}") from None


def _replace_surrogates(value):
    if isinstance(value, str):
        try:
            value.encode("utf-8")  # much faster than a search
        except UnicodeEncodeError:
            return _SURROGATES.sub("\ufffd", value)
    elif isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    elif isinstance(value, dict):
        return {_replace_surrogates(k): _replace_surrogates(v) for k, v in value.items()}
    return value
