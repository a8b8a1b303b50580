"""Writes files atomically: each appears under its name only once it is complete on the disk."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from bert_common.errors import InputError

_PARTIAL = ".partial"


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file for writing that gets its name once the block ends without an error.

    Until then it is a hidden file in the same folder, which must exist; it is removed if anything
    fails. An existing file with that name is replaced.

    Raises:
        OSError: `path`, which the error names, cannot be written; the disk may be full.
    """
    partial = _partial_path(path)
    try:
        with open(partial, "wb") as file:
            yield file
            # Otherwise a power failure may leave the name without the contents.
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        # The error of a full disk names no file, other errors name the hidden file.
        if error.errno is not None and error.filename in (None, partial):
            error.filename = os.fspath(path)
        raise
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def _partial_path(path):
    # Hidden, so that no glob matches it; in the same folder, so that renaming is atomic; random,
    # because processes with the same id on two machines may write the same file.
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{secrets.token_hex(8)}{_PARTIAL}")


def check_name_length(path: str, requirement: str) -> None:
    """Checks that `atomic_write` can name its hidden file; the error begins with `requirement`."""
    try:
        os.lstat(_partial_path(path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"{requirement}. Received: {path} ({error.strerror})") from None


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes a value as a JSON file with `atomic_write`."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    with atomic_write(path) as file:
        file.write(text.encode("utf-8"))


def remove_partial_files(paths: Iterable[str]) -> None:
    """Removes the hidden files that killed `atomic_write` calls left for some paths.

    The folders of the paths may no longer exist.
    """
    places = {(os.path.dirname(path) or ".", os.path.basename(path)) for path in paths}
    for folder in filter(os.path.isdir, {folder for folder, _ in places}):
        for entry in os.listdir(folder):
            if entry.startswith(".") and entry.endswith(_PARTIAL):
                name = entry[1:].removesuffix(_PARTIAL).rpartition(".")[0]  # drops the random part
                if (folder, name) in places:
                    os.remove(os.path.join(folder, entry))
