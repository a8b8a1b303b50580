"""Makes the folders that the programs write to, checks the names that they read."""

import os
import tempfile

from bert_common.errors import InputError


def make_writable(folder: str | os.PathLike, requirement: str) -> None:
    """Makes a folder where it is missing, and sees that a file can be written there.

    Args:
        folder: its path.
        requirement: what must hold, as the message says it.

    Raises:
        InputError: the folder cannot be made or written to.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{requirement}. Received: {os.fspath(folder)} ({error.strerror})"
        ) from None


def check_utf8(text, what):
    """Refuses bytes that Python could not decode: no output file or library takes them."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{what} must be UTF-8. Received: {text!r}") from None
