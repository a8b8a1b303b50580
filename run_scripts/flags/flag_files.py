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
            included += _read(expand_home(value.strip(), "flagfile"), inputs, folder, outer)
        else:
            own.append(f"{dashes}{name}={find_input(expand_home(value, name), folder)}")
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


# A home folder, "~" or "~user", at the beginning of a path, alone or in a list.
_HOME = re.compile(r"((?:^|(?<!\\),)\s*)(~[^/,]*)(?=/|,|\s*$)")


def expand_home(value: str, name: str) -> str:
    """Replaces "~" at the beginning of paths, which a shell leaves alone after "=".

    Raises an `InputError` if "~user/" names no user: a folder of that name would be created.
    """

    def replace(match):
        home = os.path.expanduser(match[2])
        if home == match[2] and match.string[match.end() :].startswith("/"):
            raise InputError(
                f"--{name}: ~ stands for a home folder, ./~ for a folder of that name. "
                f"Received: {value!r}, no user {match[2][1:]!r}"
            )
        return match[1] + home

    return value if "~" not in value or os.path.lexists(value) else _HOME.sub(replace, value)


def find_input(value: str, folder: str | None = None) -> str:
    """Finds files to read; returns a path that exists nowhere unchanged.

    Args:
        value: a path, or paths, globs or checkpoint prefixes separated by commas.
        folder: the folder of the flag file that names them, or None.
    """
    if _exists(value):
        return value
    parts = re.split(r"(?<!\\),", value)  # as `paths.split_list`
    paths = [_find_part(part.replace("\\,", ","), folder) for part in parts]
    if len(paths) == 1 and "\\," not in value and _lies_at(paths[0]):  # perhaps not of a list
        return paths[0]
    return ",".join(path.replace(",", "\\,") for path in paths)


def _find_part(part, folder):
    path = part.strip()
    if not path or os.path.isabs(path) or _exists(path):
        return part
    if folder is not None:
        beside = os.path.join(folder, path)
        if not _lies_at(beside):
            beside = os.path.join(glob.escape(folder), path)
        if _exists(beside):
            return beside
    model = os.path.join(os.path.dirname(REFERENCE_MODEL), path)
    if path.split("/")[0] in SHIPPED_MODELS and _exists(model):
        return model
    shipped = SHIPPED / path.removeprefix(_SHIPPED_FROM_ROOT)
    return str(shipped) if shipped.parent == SHIPPED and shipped.is_file() else part


def _exists(path):
    """Returns True if a path, a glob or a checkpoint's prefix matches a file or a folder."""
    return _lies_at(path) or bool(glob.glob(path, recursive=True))  # as `paths.match_paths`


def _lies_at(path):
    """Returns True if a path names a file, a folder or a checkpoint."""
    return os.path.exists(path) or os.path.exists(f"{path}.index")
