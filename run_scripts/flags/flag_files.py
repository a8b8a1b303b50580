"""Expands flag files and finds the input files that a command line names.

A path is looked up in the working folder, then beside the flag file that names it, then among the
flag files, configurations and models that come with this project.
"""

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

from bert_common.errors import InputError
from model_formats.model_folder import REFERENCE_MODEL, SHIPPED_MODELS

SHIPPED = Path(__file__).parents[1] / "flagfiles"
_SHIPPED_FROM_ROOT = "run_scripts/flagfiles/"  # how commands name them in the project's root


def expand(
    arguments: Iterable[str],
    inputs: Iterable[str],
    folder: str | None = None,
    outer: tuple[str, ...] = (),
) -> list[str]:
    """Replaces each --flagfile with the flags in it, and finds the inputs.

    The last value of a flag counts. Flags of flag files come first, so that the command line's own
    flags override them wherever --flagfile stands.

    Args:
        arguments: a command line without the program's name, or the lines of a flag file.
        inputs: the names of the flags whose values are files or folders to read.
        folder: the folder of the flag file; None for the command line.
        outer: the flag files being read, none of which may be named again.
    """
    left, included, own = iter(arguments), [], []
    for argument in left:
        dashes, name, is_whole, value = _split(argument)
        if name != "flagfile" and name not in inputs:
            own.append(argument)
            continue
        if not is_whole:  # --flag value
            value = next(left, None)
            if value is None:
                raise InputError(f"--{name} must be given with a value. Received: none")
        if name == "flagfile":
            included += _read(expand_home(value.strip()), inputs, folder, outer)
        else:
            own.append(f"{dashes}{name}={find_input(expand_home(value), folder)}")
    return [*included, *own]


def _split(argument):
    """Splits an argument into dashes, name (None if no flag), whether it has a value, and value."""
    name = argument.lstrip("-")
    dashes = argument[: len(argument) - len(name)]
    name, equals, value = name.partition("=")
    return dashes, name if len(dashes) in (1, 2) else None, bool(equals), value


def _read(named, inputs, folder, outer):
    """Returns the expanded arguments of a flag file."""
    path = find_input(named, folder)
    if not os.path.exists(path):
        raise InputError(
            f"--flagfile must name a file. Received: {named!r}, which is neither in the working "
            f"folder nor in {SHIPPED}"
        )
    if os.path.realpath(path) in outer:
        raise InputError(f"a flag file must not name itself. Received: {path}, which does")
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"a flag file must be UTF-8. Received: {path}: {error}") from None
    except OSError as error:
        raise InputError(
            f"--flagfile must be readable. Received: {path} ({error.strerror})"
        ) from None
    flags = [f for line in lines if (f := line.strip()) and not f.startswith(("#", "//"))]
    if zeros := [flag for flag in flags if "\0" in flag]:
        name = _split(zeros[0])[1] or "flagfile"
        raise InputError(f"--{name} must not hold a zero byte. Received: {zeros[0]!r} in {path}")
    outer = (*outer, os.path.realpath(path))
    return expand(flags, inputs, os.path.dirname(path), outer)


def expand_home(value: str) -> str:
    """Replaces "~" at the beginning of paths, which a shell leaves alone after "="."""
    if "~" not in value or os.path.lexists(value):
        return value
    return ",".join(os.path.expanduser(part.strip()) for part in value.split(","))


def find_input(value: str, folder: str | None = None) -> str:
    """Finds files to read; returns a path that exists nowhere unchanged.

    Args:
        value: a path, or paths, globs or checkpoint prefixes separated by commas.
        folder: the folder of the flag file that names them, or None.
    """
    if _exists(value):
        return value
    parts = re.split(r"(?<!\\),", value)  # as `paths.split_list`
    return ",".join(_find_part(part, folder) for part in parts)


def _find_part(part, folder):
    """Returns the first place of a path where there are files; the path as given if none has."""
    path = part.strip()
    if not path or os.path.isabs(path):
        return part
    places = [path]
    if folder is not None:
        places.append(os.path.join(folder, path))
    if path.split("/")[0] in SHIPPED_MODELS:
        places.append(os.path.join(os.path.dirname(REFERENCE_MODEL), path))
    shipped = SHIPPED / path.removeprefix(_SHIPPED_FROM_ROOT)
    if shipped.parent == SHIPPED and shipped.is_file():
        places.append(str(shipped))
    return next((place for place in places if _exists(place.replace("\\,", ","))), part)


def _exists(path):
    """Returns True if a path, a glob or a checkpoint's prefix matches a file or a folder."""
    is_there = os.path.exists(path) or os.path.exists(f"{path}.index")
    return is_there or bool(glob.glob(path, recursive=True))  # as `paths.match_paths`
