"""Creates the output folder of an export, which gets its name only once it is complete."""

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.folders import make_writable, read_bytes
from bert_common.json_text import read_json

# Lists an export's files, so that a later export replaces only them, and nothing that a user added
# or changed.
RECORD_FILE = "export.json"


def check_output_dir(path: str) -> None:
    """Raises an `InputError` unless a folder is new, empty, or an unchanged earlier export."""
    path = os.path.realpath(path)
    requirement = "--output_dir must be in a folder that can be written"
    make_writable(os.path.dirname(path), requirement)
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        raise InputError(f"--output_dir must be a folder. Received: {path}, a file")
    # A shell would stay in the replaced folder, and a mount cannot be renamed.
    is_working = os.path.samefile(path, os.curdir)
    if is_working or os.path.ismount(path):
        raise InputError(
            "--output_dir must be a folder that can be replaced as a whole, such as a new one in "
            f"it. Received: {path}, {'the working folder' if is_working else 'a mount'}"
        )
    found = _list_files(path)
    recorded = _read_record(path) if RECORD_FILE in found else {}
    for name in sorted(found - {RECORD_FILE}):
        if name not in recorded:
            reason = f"with {name}, which no export wrote"
        elif _digest(os.path.join(path, name)) != recorded[name]:
            reason = f"with {name}, which was changed after the export"
        else:
            continue
        raise InputError(
            "--output_dir must be new, empty, or an earlier export, which is then replaced. "
            f"Received: {path} {reason}"
        )


@contextlib.contextmanager
def export_folder(path: str, form: str, most_bytes: int | None = None) -> Iterator[str]:
    """Yields an empty folder that is renamed to `path` at the end, replacing an earlier export.

    The folder is next to `path`, and is removed if anything fails. `path` must have passed
    `check_output_dir`; `form` is the format's name, for the record. Raises an `InputError` if the
    files have more than `most_bytes` in total.
    """
    path = os.path.realpath(path)
    parent, name = os.path.split(path)
    partial = os.path.join(parent, f".{name}.{secrets.token_hex(8)}.partial")
    os.mkdir(partial)
    try:
        yield partial
        names = sorted(_list_files(partial))
        files = {name: _digest(os.path.join(partial, name)) for name in names}
        write_json(os.path.join(partial, RECORD_FILE), {"format": form, "files": files})
        size = sum(os.path.getsize(os.path.join(partial, name)) for name in [*names, RECORD_FILE])
        if most_bytes is not None and size > most_bytes:
            raise InputError(
                f"--max_size must be at least the size of the export. Received: {most_bytes:,} "
                f"bytes for {size:,}"
            )
        check_output_dir(path)  # again, as the export may have taken minutes
        _rename(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _rename(partial, path):
    """Renames a finished folder to `path`, then removes an earlier one."""
    if not os.path.exists(path):
        os.rename(partial, path)
        return
    earlier = f"{partial}.earlier"
    os.rename(path, earlier)
    try:
        os.rename(partial, path)
    except BaseException:
        os.rename(earlier, path)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def _list_files(folder):
    """Returns the relative paths of all files and links to folders below a folder."""
    return {
        os.path.relpath(path, folder)
        for parent, folders, names in os.walk(folder)
        for path in (os.path.join(parent, name) for name in (*folders, *names))
        if os.path.islink(path) or not os.path.isdir(path)
    }


def _read_record(folder):
    """Returns an export's files with their digests; empty if the record is malformed."""
    path = os.path.join(folder, RECORD_FILE)
    record = read_json(read_bytes(path), path)
    files = record.get("files") if isinstance(record, dict) else None
    return files if isinstance(files, dict) else {}


def _digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
