"""Reads JSON that other programs wrote: corpora, and the files of tasks."""

import json
import re

from bert_common.errors import InputError

_SURROGATES = re.compile("[\ud800-\udfff]")


def parse_json(text):
    """The value of JSON text, with every lone surrogate in it as U+FFFD.

    JSON can write half of a surrogate pair ("\\ud83d", an emoji that was cut in two), UTF-8
    cannot: nothing that holds one can be written to a file. A character takes the place of a
    character, so that offsets into a text stay right.

    Args:
        text: str, or bytes.

    Raises:
        ValueError: says what is wrong.
    """
    try:
        return _replace_surrogates(json.loads(text))
    except RecursionError:
        raise ValueError("brackets that are nested too deeply") from None


def read_json(text, where):
    """The value of JSON text, as `parse_json` has it.

    Args:
        text: str, or bytes.
        where: the file, and the line where there is one, for the message.

    Raises:
        InputError: the text is not JSON.
    """
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{where} must hold JSON. Received: {error}") from None


def _replace_surrogates(value):
    if isinstance(value, str):
        try:
            value.encode("utf-8")  # much faster than to look for them
        except UnicodeEncodeError:
            return _SURROGATES.sub("\ufffd", value)
    elif isinstance(value, list):
        return [_replace_surrogates(each) for each in value]
    elif isinstance(value, dict):
        return {_replace_surrogates(k): _replace_surrogates(v) for k, v in value.items()}
    return value
