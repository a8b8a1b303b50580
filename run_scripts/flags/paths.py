"""Reads and checks flags that name files and folders: lists, globs, what lies there."""

import dataclasses
import glob
import os
import re
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_common.folders import check_utf8, kind_of_path

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# What `flag(takes=…)` allows at a path.
FILE, FOLDER, NOTHING = "a file", "a folder", "nothing there"

# Google's command lines name both; the second decides.
_UNUSED_WITH = {"vocab_file": "spm_model_file"}

# How many folders that are left out are shown.
_SHOWN = 3

# An address of a storage system, alone or in a list.
_ADDRESS = re.compile(r"(^|,)\s*[A-Za-z][\w.+-]*://")


def check_paths(values: "DataclassInstance") -> None:
    """Refuses addresses such as gs://bucket/folder, which would become local folders.

    Nothing is read from or written to such storage: a rename there is not one step, and locks do
    not hold.
    """
    for field in dataclasses.fields(values):
        value = getattr(values, field.name)
        if isinstance(value, str) and "\0" in value:  # as a flag file may have it
            raise InputError(f"--{field.name} must not hold a zero byte. Received: {value!r}")
        if field.metadata["is_path"] and _ADDRESS.search(value or ""):
            raise InputError(
                f"--{field.name} must be a path in this machine's file system: mount the storage, "
                f"or copy to it and from it. Received: {value}"
            )


def check_path_kinds(values: "DataclassInstance") -> None:
    """Refuses a path at which lies something else than its flag takes, such as a pipe.

    Lists of files are checked where they are expanded, and what training programs find in
    --data_dir where it is read.
    """
    for field in dataclasses.fields(values):
        path, taken = getattr(values, field.name), field.metadata["takes"]
        if not path or not taken or getattr(values, _UNUSED_WITH.get(field.name, ""), None):
            continue
        for part in split_list(path) if field.metadata["is_list"] else [path]:
            kind = kind_of_path(part)
            if kind not in taken:
                must = " or ".join(name for name in taken if name != NOTHING)
                raise InputError(f"--{field.name} must be {must}. Received: {part}, {kind}")


def split_list(text: str) -> list[str]:
    """The parts of a comma-separated list; "\\," is a comma inside a part."""
    parts = re.split(r"(?<!\\),", text)
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


def expand_globs(patterns: str, flag_name: str) -> list[str]:
    """The files that a comma-separated list of paths and globs names, in sorted order.

    A path that exists is that file, whatever characters it holds; elsewhere "\\," is a comma in a
    name. A pattern that matches no file, a folder or a pipe is an InputError, which names the flag.
    """
    files = match_paths(patterns, flag_name)
    for path in files:
        check_utf8(path, f"the name of a file of --{flag_name}")
    return files


def match_paths(patterns: str, flag_name: str, folders: bool = False) -> list[str]:
    """Expands globs as `expand_globs`; with `folders` a part may also be, or match, folders."""
    found: list[str] = []
    for pattern in [patterns] if os.path.exists(patterns) else split_list(patterns):
        matches = [pattern]
        if not os.path.exists(pattern):
            matches = sorted(glob.glob(pattern, recursive=True))  # ** is folders of any depth
        chosen = list(filter(os.path.isfile, matches))
        if folders:
            within = list(filter(os.path.isdir, matches))
            if chosen and within and "**" not in pattern:  # data/* where data holds both
                more = f", {len(within) - _SHOWN:,} more" if len(within) > _SHOWN else ""
                print(f"{pattern}: files only; left out: {', '.join(within[:_SHOWN])}{more}")
            chosen = chosen or within
        if not chosen:
            raise InputError(_no_match(patterns, pattern, matches, flag_name))
        # A path of its own for a file that the shell opened: /dev/stdin is another one in a worker.
        found += [os.path.realpath(p) if p.startswith("/dev/") else p for p in chosen]
    if not found:
        raise InputError(f"--{flag_name} must name a file. Received: {patterns!r}")
    return found


def _no_match(patterns, pattern, matches, flag_name):
    """The message about a pattern without files; `matches` is what it matches instead."""
    if any(map(os.path.isdir, matches)):
        return (
            f"--{flag_name} must name files, not their folder: {os.path.join(pattern, '*')} names "
            f"all that are in it. Received: {pattern!r}, a folder"
        )
    if matches:
        return (
            f"--{flag_name} must name files, as they are read more than once: write this into a "
            f"file first. Received: {pattern!r}, {kind_of_path(matches[0])}"
        )
    hint = r" (a comma in a name is written \,)" if "," in patterns else ""
    return f"--{flag_name} must match a file{hint}. Received: {pattern!r}, no file"
