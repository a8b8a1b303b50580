"""Writes files that are there once they are whole."""

import contextlib
import json
import os
import secrets

from bert_common.errors import InputError

_PARTIAL = ".partial"


@contextlib.contextmanager
def whole_file(path):
    """Opens a file that gets its name when the block ends without an error.

    Until then it is a hidden file beside it, which is removed when anything fails.

    Args:
        path: in an existing folder; a file of that name is replaced.

    Yields:
        The file, open for writing bytes.

    Raises:
        InputError: the file cannot be written, for example on a full disk.
    """
    # Hidden, so that no glob finds it; in the same folder, so that renaming is one step; of a name
    # of its own, as two machines may write the same file, by processes of the same number.
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".{name}.{secrets.token_hex(8)}{_PARTIAL}")
    try:
        with open(partial, "wb") as file:
            yield file
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"{path} must be writable. Received: {error.strerror}") from None
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def write_json(path, value):
    """Writes a JSON file that is there once it is whole.

    Raises:
        InputError: it cannot be written.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def remove_partial(paths):
    """Removes what a killed run or worker left of these files; their folders may be gone."""
    folders = filter(os.path.isdir, {os.path.dirname(path) or "." for path in paths})
    names = {os.path.basename(path) for path in paths}
    for folder in folders:
        for entry in os.listdir(folder):
            if entry.startswith(".") and entry.endswith(_PARTIAL):
                name = entry[1:].removesuffix(_PARTIAL).rpartition(".")[0]  # without its own part
                if name in names:
                    os.remove(os.path.join(folder, entry))
