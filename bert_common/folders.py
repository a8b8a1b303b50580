"""Checks the folders, files and names that programs are given."""

import os
import stat
import tempfile

from bert_common.errors import InputError


def make_writable(folder: str | os.PathLike[str], requirement: str) -> None:
    """Creates a folder if it is missing, and checks that a file can be written to it.

    Raises an `InputError` that begins with `requirement` if either fails.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{requirement}. Received: {os.fspath(folder)} ({error.strerror})"
        ) from None


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Returns a file's contents; raises InputError if it is missing, unreadable or empty."""
    kind = kind_of_path(path)
    if kind not in ("a file", "a folder", "nothing there"):  # opening a pipe would block
        raise InputError(f"file must exist and be readable. Received: {os.fspath(path)}, {kind}")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise InputError(
            f"file must exist and be readable. Received: {os.fspath(path)} ({error.strerror})"
        ) from error
    if not content:
        raise InputError(f"file must not be empty. Received: {os.fspath(path)} (0 bytes)")
    return content


def check_utf8(text: str, what: str) -> None:
    """Raises InputError for bytes that Python could not decode and therefore cannot write."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{what} must be UTF-8. Received: {text!r}") from None


def kind_of_path(path: str | os.PathLike[str]) -> str:
    """Describes what is at a path: "a file", "a folder", "a pipe", …, "nothing there"."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        return "nothing there" if is_missing else str(error.strerror)
    return next((name for is_it, name in _KINDS if is_it(mode)), "another kind of file")


_KINDS = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a terminal or another device"),
    (stat.S_ISBLK, "a disk"),
    (stat.S_ISSOCK, "a socket"),
)
