"""Reads JSON that somebody else wrote, so that nothing in it ends in a traceback."""

import json

from tokenization.errors import InputError


def parse_json(text: str | bytes, where: str) -> object:
    """The value that a text stands for.

    Args:
        text: JSON; bytes are UTF-8, or UTF-16 or UTF-32 as JSON allows.
        where: the file, and the line where there is one, for the message.

    Raises:
        InputError: the text is not JSON.
    """
    try:
        return json.loads(text)
    # Beside what is no JSON: bytes of no encoding, a number of 5,000 digits, endless brackets.
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} must hold JSON. Received: {error}") from None
