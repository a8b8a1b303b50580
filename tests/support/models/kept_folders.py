"""Folders that many tests write alike: each is made once in a process, then copied."""

import functools
import shutil
import tempfile
from pathlib import Path

import keras

KEPT = {}  # what tells folders apart -> where the first is


@functools.cache
def _top():
    return tempfile.TemporaryDirectory(prefix="kept_folders")  # removed when the process ends


def write_kept(folder, write, *arguments, **others):
    """Writes what `write(folder, *arguments, **others)` does; from the second time on, a copy.

    To make a tiny model takes a hundred times as long as to copy its folder.
    """
    numbers = keras.config.floatx(), keras.config.dtype_policy().name
    key = write.__qualname__, repr(arguments), repr(sorted(others.items())), numbers
    if key not in KEPT:
        first = Path(_top().name) / str(len(KEPT))
        write(first, *arguments, **others)
        KEPT[key] = first
    shutil.copytree(KEPT[key], folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
