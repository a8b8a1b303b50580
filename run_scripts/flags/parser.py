"""Turns a frozen dataclass into the command line of a program.

    @dataclasses.dataclass(frozen=True)
    class CopyFlags:
        \"""Copies a file.\"""
        source: str = flag(None, "The file to copy.", required=True)
        times: int = flag(1, "How often.")

    def main(argv=None):
        return run_program(copy, CopyFlags, argv)     # copy(CopyFlags(source=..., times=1))

A field is the only declaration of its flag. Where the two reference repositories have
different defaults for one flag, the default is a `PerModel`, and the program's dataclass
says which of them holds once it knows which model is meant (`resolve_model_defaults`).
"""

import contextlib
import dataclasses
import errno
import inspect
import operator
import os
import sys
import textwrap
import types
import typing
import warnings

from absl import flags as absl_flags
from tqdm import tqdm

from bert_common.errors import InputError
from bert_common.folders import check_utf8
from bert_common.startup import exit_silently_on_interrupt, interruptible
from run_scripts.flags.flag_files import expand
from run_scripts.flags.help_groups import (
    COMPATIBILITY,
    EXAMPLES,
    GENERAL,
    GROUPS,
    REQUIRED,
    TPU,
    group_of,
)
from run_scripts.flags.paths import check_paths


@dataclasses.dataclass(frozen=True)
class PerModel:
    """A default that depends on whose program this was: google-research/bert's or albert's."""

    bert: object
    albert: object


def both(value):
    """A default that is the same for both, and like a `PerModel` can be told from a given value."""
    return PerModel(value, value)


def flag(
    default,
    help,
    *,
    required=False,
    is_input=False,
    choices=None,
    least=None,
    above=None,
    most=None,
    below=None,
):
    """Declares one flag as a dataclass field.

    Args:
        default: the value without the flag; None for "not given"; a `PerModel` for two defaults.
        help: what a person reads in `--help`.
        required: whether a run without the flag is refused.
        is_input: whether the value names what is read, which `flag_files` looks up in more places
            than the working folder.
        choices: the allowed values, for a string flag.
        least, above: the lowest value that is allowed, or one that it must be above; every number
            has one of them, and one of the next two.
        most, below: the highest value that is allowed, or one that it must be below.
    """
    bounds = {"least": least, "above": above, "most": most, "below": below}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return dataclasses.field(
        default=default,
        metadata={
            "help": help,
            "required": required,
            "is_input": is_input,
            "choices": choices,
            "bounds": given,
        },
    )


# How a bound is said, and when it is kept; a NaN keeps none.
_BOUNDS = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}


def check_bounds(values):
    """Refuses numbers out of the bounds that their flags were declared with.

    Args:
        values: an instance of a program's dataclass; what is no number is let through.

    Raises:
        InputError: names the flag, its bounds, its value.
    """
    for field in dataclasses.fields(values):
        value, bounds = getattr(values, field.name), field.metadata["bounds"]
        if type(value) not in (int, float):
            continue
        if not all(_BOUNDS[name][1](value, bound) for name, bound in bounds.items()):
            must = " and ".join(f"{_BOUNDS[name][0]} {bound}" for name, bound in bounds.items())
            raise InputError(f"--{field.name} must be {must}. Received: {value}")


def run_program(program, flags_class, argv=None):
    """Parses the command line, calls `program(values)`, turns bad input into one line.

    Returns:
        The exit status: 0, or 1 after one line on standard error.
    """
    try:
        values = parse(flags_class, sys.argv if argv is None else argv)
        if values is not None:  # None: --help was printed
            with interruptible(), _warnings_in_one_line():
                program(values)
        sys.stdout.flush()  # now, while a full disk can still be told
        return 0
    except InputError as error:
        return _complain(error)
    except OSError as error:
        if error.errno not in _ORDINARY_ERRNO:
            raise
        return _complain(f"{error.strerror}: {error.filename or 'while reading or writing'}")
    except KeyboardInterrupt as error:
        status = _complain(str(error) or "interrupted")
        exit_silently_on_interrupt()
        return status


# What a person can set right: no such file, no permission, a full or failing disk, a folder
# for a file, a name that is too long.
_ORDINARY_ERRNO = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS,
    errno.EISDIR, errno.ENOTDIR, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP,
}  # fmt: skip


@contextlib.contextmanager
def _warnings_in_one_line():
    """Shows warnings to people: one line each, above a progress bar, without a line of code."""
    kept = warnings.showwarning
    warnings.showwarning = lambda message, *_, **__: tqdm.write(
        f"warning: {' '.join(str(message).split())}", file=sys.stderr
    )
    try:
        yield
    finally:
        warnings.showwarning = kept


# What a person reads of a message that holds a value of thousands of characters.
_LONGEST_MESSAGE = 1500


def _complain(message):
    line = " ".join(str(message).split())
    if len(line) > _LONGEST_MESSAGE:
        line = f"{line[:1200]} [...] {line[-200:]}"
    print(f"error: {line}", file=sys.stderr)
    return 1


FLAGFILE_HELP = (
    "Reads flags from a file, one --name=value a line. Files to read are looked up in the working "
    "folder, then beside that file, then among those that come with this project."
)

HELP_FLAGS = ("help", "h", "helpshort", "helpfull")

# What every program of absl's has, and command lines written for the reference programs may hold.
LOGGING_FLAGS = ("logtostderr", "alsologtostderr", "verbosity", "v", "stderrthreshold", "log_dir")


def _with_values(argv):
    """Gives the logging flags that may stand alone a value, since none of them is read."""
    alone = {f"{dashes}{name}" for dashes in ("-", "--") for name in LOGGING_FLAGS}
    return [f"{argument}=true" if argument in alone else argument for argument in argv]


def parse(flags_class, argv):
    """Reads a command line into the program's dataclass.

    Args:
        flags_class: a frozen dataclass whose fields are declared with `flag`.
        argv: the program's name, then its arguments; `--flagfile=PATH` is understood.

    Returns:
        An instance of `flags_class`, or None after `--help` has been printed.

    Raises:
        InputError: an unknown flag, a value of the wrong type or out of its bounds, a required
            flag not given, an argument that is not UTF-8.
    """
    for argument in argv:
        check_utf8(argument, "the command line")
    values = absl_flags.FlagValues()
    define_flags(flags_class, values)
    for name in HELP_FLAGS:
        absl_flags.DEFINE_boolean(name, False, "Show the flags.", flag_values=values)
    for name in LOGGING_FLAGS:
        absl_flags.DEFINE_string(name, None, "Accepted, means nothing here.", flag_values=values)
    inputs = {f.name for f in dataclasses.fields(flags_class) if f.metadata["is_input"]}
    try:
        rest = values(_with_values([argv[0], *expand(argv[1:], inputs)]))[1:]
    except absl_flags.Error as error:
        raise InputError(f"{error} (--help lists the flags)") from None
    if any(values[name].value for name in HELP_FLAGS):
        print(help_text(flags_class, argv[0], full=values["helpfull"].value))
        return None
    check_utf8(os.getcwd(), "the path of the working folder")
    if rest:
        raise InputError(f"flags are written --name=value. Received: {' '.join(rest)!r}")
    chosen = {}
    for field in dataclasses.fields(flags_class):
        chosen[field.name] = values[field.name].value
        if not values[field.name].present and isinstance(field.default, PerModel):
            chosen[field.name] = field.default
        if field.metadata["required"] and not chosen[field.name]:
            raise InputError(f"--{field.name} must be given: {field.metadata['help']}")
    chosen = flags_class(**chosen)
    check_bounds(chosen)
    check_paths(chosen)
    return chosen


def define_flags(flags_class, values):
    """Defines one absl flag for each field of `flags_class` in `values`."""
    for field in dataclasses.fields(flags_class):
        default = None if isinstance(field.default, PerModel) else field.default
        arguments = {"default": default, "help": field.metadata["help"], "flag_values": values}
        kind = value_type(field)
        if field.metadata["choices"]:
            absl_flags.DEFINE_enum(
                field.name, enum_values=list(field.metadata["choices"]), **arguments
            )
        elif kind is bool:
            absl_flags.DEFINE_boolean(field.name, **arguments)
        elif kind is int:
            absl_flags.DEFINE_integer(field.name, **arguments)
        elif kind is float:
            absl_flags.DEFINE_float(field.name, **arguments)
        else:
            absl_flags.DEFINE_string(field.name, **arguments)


def value_type(field):
    """The type of a field's value: `int` for both `int` and `int | None`."""
    if isinstance(field.type, types.UnionType):
        return next(t for t in typing.get_args(field.type) if t is not types.NoneType)
    return field.type


def resolve_model_defaults(values, model_type):
    """Puts one model's defaults where the command line gave no value.

    Args:
        values: an instance of a program's dataclass.
        model_type: "bert" or "albert".

    Returns:
        A copy of `values` without any `PerModel` left.
    """
    given = {
        field.name: getattr(getattr(values, field.name), model_type)
        for field in dataclasses.fields(values)
        if isinstance(getattr(values, field.name), PerModel)
    }
    return dataclasses.replace(values, **given)


# From here on a bound is no news to anybody who reads --help.
_NO_LIMIT = 2**31 - 1

_PACKAGE = __name__.split(".")[0]


def help_text(flags_class, program, full=True):
    """What the program does, an example, then every flag with its default, in groups.

    Args:
        flags_class: the program's dataclass.
        program: its name, or the path that it was started by.
        full: also the flags that mean something for TPUs alone.
    """
    folder, program = os.path.split(program)
    started = f"python {program}" if program.endswith(".py") else program
    parts = folder.split(os.sep)
    if _PACKAGE in parts:  # python -m
        package = ".".join(parts[parts.index(_PACKAGE) :])
        started = f"python -m {package}.{program.removesuffix('.py')}"
    groups = {heading: {} for heading in (REQUIRED, *GROUPS, COMPATIBILITY, TPU)}
    for field in dataclasses.fields(flags_class):
        help, required = field.metadata["help"], field.metadata["required"]
        groups[group_of(field.name, help, required)][field.name] = _help_lines(field)
    groups[GENERAL]["flagfile"] = _described("flagfile=<path>", FLAGFILE_HELP)
    if groups[TPU] and not full:
        del groups[TPU]
        groups[GENERAL]["helpfull"] = _described("helpfull", "Shows the flags for TPUs too.")
    lines = [f"{program}: {inspect.cleandoc(flags_class.__doc__)}"]
    if example := EXAMPLES.get(flags_class.__name__):
        example = f"{started} {example}".replace(" --", " \\\n      --")
        lines += ["", "Example:", f"  {example}"]
    order = [name for names in GROUPS.values() for name in names]
    for heading, flags in groups.items():
        names = sorted(flags, key=lambda name: order.index(name) if name in order else len(order))
        if names:
            lines += ["", f"{heading}:", *(line for name in names for line in flags[name])]
    return "\n".join(lines)


def _described(flag, help):
    """A flag, then what it does in lines that a terminal need not break."""
    indent = " " * 8
    wrapped = textwrap.wrap(
        help, 96, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return f"  --{flag}", *wrapped


def _help_lines(field):
    """A flag with its values and its default, then what it does."""
    default = field.default
    if isinstance(default, PerModel) and default.bert == default.albert:
        default = default.bert
    if isinstance(default, PerModel):
        shown = f"default: BERT {_shown(default.bert)}, ALBERT {_shown(default.albert)}"
    elif field.metadata["required"]:
        shown = "required"
    else:
        shown = "not set" if default is None else f"default: {_shown(default)}"
    kind = field.metadata["choices"] or [value_type(field).__name__]
    bounds = field.metadata["bounds"].values()
    if kind == ["int"] and bounds and max(bounds) < _NO_LIMIT:
        kind = [" to ".join(map(str, bounds))]
    return _described(f"{field.name}=<{'|'.join(kind)}>  ({shown})", field.metadata["help"])


def _shown(value):
    if value is None or value == "":
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
