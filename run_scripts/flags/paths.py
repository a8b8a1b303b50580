"""Checks and expands the values of flags that name files and folders."""

import dataclasses
import glob
import os
import re
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_common.folders import check_utf8, kind_of_path

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# What `flag(takes=…)` may allow at a path.
FILE, FOLDER, NOTHING = "a file", "a folder", "nothing there"

# Flag -> the flag that replaces it; Google's command lines give both.
_UNUSED_WITH = {"vocab_file": "spm_model_file"}

# The maximum number of names to show.
_SHOWN = 3

# An address of a storage system, alone or in a list.
_ADDRESS = re.compile(r"(^|,)\s*[A-Za-z][\w.+-]*://")

# What a shell would take away, left in a line that was copied to a flag file.
_SHELLS = re.compile(r"""(['"]).*\1|.*\\""")


def check_paths(values: "DataclassInstance") -> None:
    """Raises an `InputError` for an address such as gs://bucket/folder, or a path in quotes.

    An address would become a local folder. Such storage is never used: renames there are not atomic
    and locks do not hold.
    """
    for field in dataclasses.fields(values):
        value = getattr(values, field.name) if field.metadata["is_path"] else None
        if not value:
            continue
        if _ADDRESS.search(value):
            raise InputError(
                f"--{field.name} must be a path in this machine's file system: mount the storage, "
                f"or copy to it and from it. Received: {value}"
            )
        if _SHELLS.fullmatch(value) and not os.path.lexists(value):
            raise InputError(
                f"--{field.name} must be a path without quotes around it and without \\ after it: "
                f"only a shell removes them. Received: {value}"
            )


def check_path_kinds(values: "DataclassInstance") -> None:
    """Raises an `InputError` if a path is of a kind that its flag does not take, such as a pipe.

    Lists of files are checked when they are expanded, and files in --data_dir when they are read.
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
    """Splits a comma-separated list; "\\," is a comma inside a part."""
    parts = re.split(r"(?<!\\),", text)
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


def expand_globs(patterns: str, flag_name: str) -> list[str]:
    """Returns the files that a comma-separated list of paths and globs names, sorted per glob.

    An existing path is used literally, whatever characters it contains; otherwise "\\," is a comma
    in a name. A pattern that matches no file, only a folder or a pipe, is an `InputError` that
    names the flag.
    """
    files = match_paths(patterns, flag_name)
    for path in files:
        check_utf8(path, f"the name of a file of --{flag_name}")
    return files


def match_paths(patterns: str, flag_name: str, folders: bool = False) -> list[str]:
    """Expands globs as `expand_globs`; with `folders`, a part without files may match folders."""
    found: list[str] = []
    for pattern in [patterns] if os.path.exists(patterns) else split_list(patterns):
        matches = [pattern]
        if not os.path.exists(pattern):
            matches = sorted(glob.glob(pattern, recursive=True))  # ** matches folders at any depth
        chosen = list(filter(os.path.isfile, matches))
        if folders:
            within = list(filter(os.path.isdir, matches))
            if chosen and within and "**" not in pattern:  # such as data/* if data holds both
                print(f"{pattern}: files only; left out: {first_of(within)}")
            chosen = chosen or within
        if not chosen:
            raise InputError(_no_match(patterns, pattern, matches, flag_name))
        # The real path of a file that the shell opened: /dev/stdin is a different one in a worker.
        found += [os.path.realpath(p) if p.startswith("/dev/") else p for p in chosen]
    if not found:
        raise InputError(f"--{flag_name} must name a file. Received: {patterns!r}")
    return found


def first_of(names: list[str]) -> str:
    """Lists the first names, and says how many more there are."""
    more = f", {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _no_match(patterns, pattern, matches, flag_name):
    """Returns the message for a pattern without files; `matches` are the paths that it matches."""
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
