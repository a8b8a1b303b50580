"""Manages the work folder of an unfinished run: its manifest, locks and removal."""

import contextlib
import datetime
import glob
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bert_common import file_lock
from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json

MANIFEST = "manifest.json"
LOCK = ".lock"


def begin_or_resume(folder: str, manifest: Mapping[str, Any], may_clear: bool) -> None:
    """Writes the manifest, or checks that the locked folder was begun with the same settings.

    Files in a folder without a manifest are left over from a removed run and are deleted.

    Args:
        manifest: a flat dict of JSON values, which must be equal for the run to resume.
        may_clear: whether to start over in a folder with different settings if no chunk is finished
            (must be False if other tasks may be working in the folder).
    """
    # Tasks that start at the same time must not mistake each other's files for left-over ones.
    with locked(folder, "begin", wait=True):
        existing = read_manifest(folder)
        differences = [] if existing is None else describe_differences(existing, manifest)
        if differences and not (may_clear and not has_chunks(folder)):
            raise InputError(
                f"{folder} must hold unfinished work of the same settings. Received: "
                f"{'; '.join(differences)}; delete that folder to start over"
            )
        if differences or existing is None:
            _remove_work(folder)
            write_json(os.path.join(folder, MANIFEST), manifest)


def read_manifest(folder: str) -> dict[str, Any] | None:
    """Reads the manifest of an unfinished run; None if there is none."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            return parse_json(file.read())
    except FileNotFoundError:
        return None


def has_chunks(folder: str) -> bool:
    """Returns True if any chunk is finished."""
    return bool(glob.glob(os.path.join(glob.escape(folder), "chunk-*.json")))


def describe_inputs(paths: Iterable[str]) -> dict[str, str]:
    """Returns the manifest entries of input files, with the size and time of each."""
    inputs = {}
    for path in paths:
        status = os.stat(path)
        modified = datetime.datetime.fromtimestamp(status.st_mtime, datetime.UTC).isoformat()
        inputs[f"input {os.path.abspath(path)}"] = f"{status.st_size} bytes of {modified}"
    return inputs


def describe_differences(old: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Describes the differences between two manifests in phrases."""
    new = json.loads(json.dumps(manifest))  # tuples become lists
    names = [name for name in {**new, **old} if new.get(name) != old.get(name)]
    phrases = [_difference(name, old.get(name), new.get(name)) for name in names[:_MAX_DIFFERENCES]]
    if len(names) > _MAX_DIFFERENCES:
        phrases.append(f"{len(names) - _MAX_DIFFERENCES} more")
    return phrases


# The maximum number of differences in a message, which must fit in one line.
_MAX_DIFFERENCES = 3


def _difference(name, old, new):
    if isinstance(old, list) and isinstance(new, list):  # the first items that differ
        pairs = list(itertools.zip_longest(old, new))
        number = next(k for k, (old_item, new_item) in enumerate(pairs) if old_item != new_item)
        name, (old, new) = f"number {number + 1} of the {name}", pairs[number]
    return f"{name} was {_format(old)}, is now {_format(new)}"


def _format(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:38]}...{text[-39:]}"  # a file's name is at the end


@contextlib.contextmanager
def locked(folder: str, name: str, wait: bool = False) -> Iterator[bool]:
    """Holds a lock in the folder, which the system releases when the process ends.

    Yields True if this process holds the lock, and False if a different one does or the folder is
    gone. With `wait`, it waits until the current holder releases the lock.
    """
    with contextlib.ExitStack() as stack:
        try:
            path = os.path.join(folder, name + LOCK)
            is_free = stack.enter_context(file_lock.locked(path, wait)) is None
        except FileNotFoundError:
            is_free = False
        except OSError as error:
            raise InputError(
                f"{folder} must be on a file system with file locks. Received: {error.strerror}"
            ) from None
        yield is_free


def remove_work_folder(folder: str) -> None:
    """Removes the folder and its contents.

    The locks are removed last, because no other run can start while they are held.
    """
    with contextlib.suppress(FileNotFoundError):  # another task removed it first
        _remove_work(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_work(folder):
    """Removes everything but the locks; the manifest is last, so no file remains without it."""
    names = [name for name in os.listdir(folder) if not name.endswith(LOCK)]
    # Network file systems use such names for removed files that are still open.
    names = [name for name in names if not name.startswith(".nfs")]
    for name in sorted(names, key=MANIFEST.__eq__):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))
