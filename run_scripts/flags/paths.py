"""Reads flags that name files and folders: lists, globs, no addresses of storage systems."""

import dataclasses
import glob
import os
import re

from bert_common.errors import InputError
from bert_common.folders import check_utf8
from run_scripts.flags.help_groups import COMPATIBILITY, group_of

# The flags that name files or folders.
_PATH_FLAG = re.compile(
    r"(.*_)?(file|dir|checkpoint)|compare|model|add_tokens|corpus|held_out|reviews|begin_with|ledger"
    r"|tokenizers"
)

# An address of a storage system, alone or in a list.
_ADDRESS = re.compile(r"(^|,)\s*[A-Za-z][\w.+-]*://")


def check_paths(values):
    """Refuses addresses such as gs://bucket/folder, which would become local folders.

    Nothing is read from or written to such storage: a rename there is not one step, and locks do
    not hold. Flags without effect are not checked.

    Raises:
        InputError: names the flag and its value.
    """
    for field in dataclasses.fields(values):
        value, about = getattr(values, field.name), field.metadata
        if isinstance(value, str) and "\0" in value:  # as a flag file may have it
            raise InputError(f"--{field.name} must not hold a zero byte. Received: {value!r}")
        if not isinstance(value, str) or not _PATH_FLAG.fullmatch(field.name):
            continue
        unused = group_of(field.name, about["help"], about["required"]) == COMPATIBILITY
        if _ADDRESS.search(value) and not unused:
            raise InputError(
                f"--{field.name} must be a path in this machine's file system: mount the storage, "
                f"or copy to it and from it. Received: {value}"
            )


def split_list(text):
    """The parts of a comma-separated list; "\\," is a comma inside a part."""
    parts = re.split(r"(?<!\\),", text)
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


def expand_globs(patterns, flag_name):
    """The files that a comma-separated list of paths and globs names, in sorted order.

    Args:
        patterns: for example "a.txt,more/*.txt". A path that exists is that file, whatever
            characters it holds; elsewhere "\\," is a comma in a name.
        flag_name: the flag that holds the patterns, for the error.

    Raises:
        InputError: one of the patterns matches no file.
    """
    files = []
    for pattern in [patterns] if os.path.isfile(patterns) else split_list(patterns):
        if os.path.isfile(pattern):
            matches = [pattern]
        else:
            matches = sorted(path for path in glob.glob(pattern) if os.path.isfile(path))
        if not matches:
            hint = r" (a comma in a name is written \,)" if "," in patterns else ""
            raise InputError(
                f"--{flag_name} must match a file{hint}. Received: {pattern!r}, no file"
            )
        for path in matches:
            check_utf8(path, f"the name of a file of --{flag_name}")
        files += matches
    if not files:
        raise InputError(f"--{flag_name} must name a file. Received: {patterns!r}")
    return files
