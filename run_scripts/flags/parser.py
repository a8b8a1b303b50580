"""Turns a frozen dataclass into the command line of a program.

@dataclasses.dataclass(frozen=True)
class CopyFlags:
    \"""Copies a file.\"""
    source: str = flag(None, "The file to copy.", required=True)
    times: int = flag(1, "How often.")

main = functools.partial(run_program, copy, CopyFlags)    # copy(CopyFlags(source=..., times=1))
"""

import contextlib
import dataclasses
import errno
import inspect
import itertools
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags as absl_flags
from tqdm import tqdm

from bert_common import VERSION
from bert_common.errors import InputError
from bert_common.folders import check_utf8
from bert_common.startup import exit_silently_on_interrupt, interruptible
from run_scripts.flags.declaration import INT32_MAX, Flags, PerModel, check_bounds, value_type
from run_scripts.flags.flag_files import expand, expand_home
from run_scripts.flags.groups import GENERAL_HEADING, TPU, by_heading
from run_scripts.flags.paths import check_path_kinds, check_paths
from run_scripts.flags.relations import check_relations, full_help, without_effect

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def run_program(
    program: Callable[[Flags], Any], flags_class: type[Flags], argv: Sequence[str] | None = None
) -> int:
    """Parses the command line and calls `program(values)`.

    Returns the exit status: 0, or 1 after one line about bad input on standard error.
    """
    try:
        values = parse(flags_class, sys.argv if argv is None else argv)
        if values is not None:  # None: --help or --version was printed
            check_path_kinds(values)
            if names := without_effect(values):
                print(f"note: --{', --'.join(names)}: without effect here")
            with interruptible(), _warnings_in_one_line():
                program(values)
        sys.stdout.flush()  # now, while a full disk can still be reported
        return 0
    except InputError as error:
        return _complain(error)
    except OSError as error:
        if error.filename is None and error.errno not in _ORDINARY_ERRNO:
            raise
        return _complain(f"{error.strerror}: {error.filename or 'while reading or writing'}")
    except KeyboardInterrupt as error:
        status = _complain(str(error) or "interrupted")
        exit_silently_on_interrupt()
        return status


# Errors that the user can fix, even if they do not name a file: no such file, no permission, a full
# or failing disk, a folder in place of a file, a name that is too long.
_ORDINARY_ERRNO = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS,
    errno.EISDIR, errno.ENOTDIR, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP,
}  # fmt: skip


@contextlib.contextmanager
def _warnings_in_one_line():
    """Shows each warning in one line, without source code, above a progress bar."""
    kept = warnings.showwarning
    warnings.showwarning = lambda message, *_, **__: tqdm.write(
        f"warning: {' '.join(str(message).split())}", file=sys.stderr
    )
    try:
        yield
    finally:
        warnings.showwarning = kept


# Longer messages, which contain values of thousands of characters, are shortened.
_LONGEST_MESSAGE = 1500


def _complain(message):
    """Prints a message as one line on standard error; returns the exit status."""
    line = " ".join(str(message).split())
    if len(line) > _LONGEST_MESSAGE:
        line = f"{line[:1200]} [...] {line[-200:]}"
    print(f"error: {line}", file=sys.stderr)
    return 1


FLAGFILE_HELP = (
    "Read flags from a file, one --name=value per line. Flags on the command line take precedence, "
    "wherever they stand. Input files are looked up in the working folder, then beside the flag "
    "file, then among the files that come with this project."
)

HELP_FLAGS = ("help", "h", "helpshort", "helpfull")
VERSION_FLAG = "version"

# absl's own flags, which command lines of the reference programs may contain.
LOGGING_FLAGS = ("logtostderr", "alsologtostderr", "verbosity", "v", "stderrthreshold", "log_dir")


def parse(flags_class: type[Flags], argv: Sequence[str]) -> Flags | None:
    """Parses a command line, which begins with the program's name, into the program's dataclass.

    If the class has a function `as_meant`, it turns the given values into the program's values,
    both dicts by name. Returns None after printing `--help` or `--version`. Raises an `InputError`
    for an unknown flag, a value of the wrong type or out of bounds, flags that do not go together,
    or arguments not in UTF-8.
    """
    for argument in argv:
        check_utf8(argument, "the command line")
    values = absl_flags.FlagValues()
    define_flags(flags_class, values)
    for name in (*HELP_FLAGS, VERSION_FLAG):
        absl_flags.DEFINE_boolean(name, False, "Show the flags.", flag_values=values)
    for name in LOGGING_FLAGS:
        absl_flags.DEFINE_string(name, None, "Accepted, without effect.", flag_values=values)
    inputs = {f.name for f in dataclasses.fields(flags_class) if f.metadata["is_input"]}
    given = expand(argv[1:], inputs)
    # Logging flags are declared as strings, so they need a value, which is never read.
    alone = {f"{dashes}{name}" for dashes in ("-", "--") for name in LOGGING_FLAGS}
    given = [f"{part}=true" if part in alone else part for part in given]
    try:
        rest = values([argv[0], *given])[1:]
    except (absl_flags.Error, ValueError) as error:  # ValueError: --noflag=value
        raise InputError(f"{error} (--help lists the flags)") from None
    if any(values[name].value for name in HELP_FLAGS):
        print(help_text(flags_class, argv[0], full=bool(values["helpfull"].value)))
        return None
    if values[VERSION_FLAG].value:
        print(f"{os.path.basename(argv[0])} {VERSION}")
        return None
    check_utf8(os.getcwd(), "the path of the working folder")
    if rest:
        raise InputError(f"flags are written --name=value. Received: {' '.join(rest)!r}")
    chosen = {}
    for field in dataclasses.fields(flags_class):
        value = values[field.name].value
        if isinstance(value, str) and field.metadata["is_path"]:
            value = expand_home(value)
        if value and field.metadata["convert"]:
            value = field.metadata["convert"](value)
        chosen[field.name] = value
        if not values[field.name].present and isinstance(field.default, PerModel):
            chosen[field.name] = field.default
        if field.metadata["required"] and not chosen[field.name]:
            raise InputError(f"--{field.name} must be given: {field.metadata['help']}")
    typed = flags_class(**chosen)
    check_bounds(typed)
    check_paths(typed)
    meant = flags_class(**getattr(flags_class, "as_meant", dict)(chosen))
    check_relations(typed, meant)
    return meant


def define_flags(flags_class: "type[DataclassInstance]", values: absl_flags.FlagValues) -> None:
    """Defines one absl flag for each field of `flags_class` in `values`."""
    for field in dataclasses.fields(flags_class):
        default = None if isinstance(field.default, PerModel) else field.default
        arguments = {"default": default, "help": field.metadata["help"], "flag_values": values}
        define: Callable[..., Any] = _DEFINITIONS[value_type(field)]
        if field.metadata["choices"]:
            define, arguments["enum_values"] = absl_flags.DEFINE_enum, field.metadata["choices"]
            arguments["case_sensitive"] = field.metadata["convert"] is not str.lower
        define(field.name, **arguments)


_DEFINITIONS: dict[Any, Callable[..., Any]] = {
    bool: absl_flags.DEFINE_boolean,
    int: absl_flags.DEFINE_integer,
    float: absl_flags.DEFINE_float,
    str: absl_flags.DEFINE_string,
}

_PACKAGE = __name__.split(".")[0]


def help_text(flags_class: "type[DataclassInstance]", program: str, full: bool = True) -> str:
    """Returns the text of `--help`: what the program does, an example, and the flags in groups.

    `full` includes the flags for TPUs.
    """
    folder, program = os.path.split(program.removesuffix("/__main__.py"))  # of a package
    started = f"python {program}" if program.endswith(".py") else program
    parts = folder.split(os.sep)
    if _PACKAGE in parts:  # python -m
        package = ".".join(parts[parts.index(_PACKAGE) :])
        started = f"python -m {package}.{program.removesuffix('.py')}"
    fields = dataclasses.fields(flags_class)
    shown = [field for field in fields if full or field.metadata["group"] != TPU]
    general = {"flagfile=<path>": FLAGFILE_HELP, "version": "Print the version of this project."}
    if len(shown) < len(fields):
        general["helpfull"] = "Show the flags for TPUs too."
    lines = [f"{program}: {inspect.cleandoc(flags_class.__doc__ or '')}"]
    if example := getattr(flags_class, "EXAMPLE", None):
        example = f"{started} {example}".replace(" --", " \\\n      --")
        lines += ["", "Example:", f"  {example}"]
    for heading, flags in by_heading(shown).items():
        described = [*map(_help_lines, flags)]
        if heading == GENERAL_HEADING:
            described += [_described(name, help) for name, help in general.items()]
        lines += ["", f"{heading}:", *itertools.chain(*described)]
    return "\n".join(lines)


def _described(flag, help):
    """Returns the lines about a flag: its name, then its wrapped help."""
    indent = " " * 8
    wrapped = textwrap.wrap(
        help, 96, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return f"  --{flag}", *wrapped


def _help_lines(field):
    """Returns the lines about a flag, with its values and its default."""
    default = field.default
    if isinstance(default, PerModel) and not default.by_encoder:
        default = default.default
    if isinstance(default, PerModel):
        values = (f"{title} {_shown(value)}" for title, value in default.by_title().items())
        shown = f"default: {', '.join(values)}"
    elif field.metadata["required"]:
        shown = "required"
    else:
        shown = "not set" if default is None else f"default: {_shown(default)}"
    kind = field.metadata["choices"] or [value_type(field).__name__]
    bounds = field.metadata["bounds"].values()
    if kind == ["int"] and bounds and max(bounds) < INT32_MAX:
        kind = [" to ".join(map(str, bounds))]
    return _described(f"{field.name}=<{'|'.join(kind)}>  ({shown})", full_help(field))


def _shown(value):
    if value is None or value == "":
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
