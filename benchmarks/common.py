"""Provides the benchmarks' shared tools for command lines, rounds, tables and program runs."""

import argparse
import functools
import importlib.metadata
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError

ROOT = Path(__file__).parents[1]

# Quiet and offline. Several processes share a GPU, so none may reserve all of its memory.
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "KERAS_BACKEND": "tensorflow",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "HF_HUB_OFFLINE": "1",
}


def launch(main, doc, flags, rounds=None, passed_on=False):
    """Runs a benchmark from its command line, and ends the process.

    Args:
        main: a function of the parsed arguments that returns None or an exit status. An
            `InputError` or a file error is reported in one line.
        doc: the docstring of its file, which --help shows verbatim.
        flags: name -> default value, or a type if it is required, or a `flag` or a `position`.
        rounds: the default of --rounds; None for a benchmark without this flag.
        passed_on: whether "flags" of the arguments are those after "--", for another program.
    """
    given = sys.argv[1:]
    at = given.index("--") if passed_on and "--" in given else len(given)
    arguments = parser_of(doc, flags, rounds).parse_args(given[:at])
    arguments.flags = given[at + 1 :]
    os.environ.update(ENVIRONMENT)  # before TensorFlow is imported
    try:
        status = main(arguments)
    except (InputError, OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt as error:
        sys.exit(f"error: {str(error) or 'interrupted'}")
    sys.exit(status)


def parser_of(doc, flags, rounds=None):
    """Returns the parser of a command line; the arguments are as for `launch`."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=formatter)
    for name, value in flags.items():
        described = value if isinstance(value, dict) else flag(value)
        parser.add_argument(name if "nargs" in described else f"--{name}", **described)
    if rounds is not None:
        help = "in which all take turns"
        parser.add_argument("--rounds", type=positive(int), default=rounds, help=help)
    return parser


def flag(default, help=None, **more):
    """Describes a flag of `launch`.

    Args:
        default: the default value, which determines the flag's type; a type or a function of a
            text makes the flag required.
        help: a text for --help.
        **more: further arguments of `add_argument`.
    """
    if callable(default):
        return {"type": default, "required": True, "help": help, **more}
    if default is False:
        return {"action": "store_true", "help": help, **more}
    if default is not None and "type" not in more:
        more["type"] = whole_numbers if isinstance(default, list) else type(default)
    return {"default": default, "help": help, **more}


def position(help=None, nargs=None, **more):
    """Describes an argument without a name; the arguments are as for `add_argument`."""
    return {"help": help, "nargs": nargs, **more}


def some_of(default, choices):
    """Returns a `flag` for a comma-separated list of choices."""
    return flag(list(default), type=one_of(*choices))


def one_of(*choices):
    """Returns an argparse type for a comma-separated list of `choices`."""

    def parse(text):
        values = text.split(",")
        if not set(values) <= set(choices):
            raise ValueError
        return values

    parse.__name__ = f"list of {', '.join(choices)}"  # the type's name in argparse's errors
    return parse


def positive(kind):
    """Returns an argparse type for a finite number above 0 of the given kind, int or float."""

    def parse(text):
        if not 0 < (number := kind(text)) < float("inf"):
            raise ValueError
        return number

    parse.__name__ = f"{kind.__name__} above 0"
    return parse


def whole_numbers(text):
    """Parses comma-separated integers above 0, as an argparse type."""
    return [positive(int)(number) for number in text.split(",")]


whole_numbers.__name__ = "list of integers above 0"


def take_turns(runs, rounds):
    """Calls functions in turn, round after round: A B C A B C ...

    The speed of a shared machine drifts, so only numbers of the same round should be compared.

    Args:
        runs: name -> a function without arguments.
        rounds: the number of calls of each function.

    Returns:
        A dict from a name to the list of the function's results, round by round.
    """
    found = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            found[name].append(run())
    return found


def seconds_of(run, *arguments):
    """Returns the seconds that a function call takes."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def peak_gib(process="self"):
    """Returns the peak memory of a running process so far, in GiB; 0 if it is not known."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    kib = [line.split()[1] for line in lines.splitlines() if line.startswith("VmHWM:")]
    return int(kib[0]) / 2**20 if kib else 0.0


def ratios(values, base):
    """Returns the ratios of two lists of numbers, round by round."""
    return [a / b for a, b in zip(values, base, strict=True)]


def median_and_spread(values):
    """Returns the median of some values, and the interquartile range divided by it."""
    if len(values) == 1:
        return values[0], 0.0
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, (high - low) / median


def cells(values, form=".3g"):
    """Formats the median and spread of some values as two cells of a table."""
    median, spread = median_and_spread(values)
    return [f"{median:{form}}", f"{spread:.0%}"]


def cell(values, form=".3g"):
    """Formats the median and spread of some values as one cell of a table."""
    return "{} ({})".format(*cells(values, form))


def print_table(headings, rows):
    """Prints a Markdown table, each row as soon as `rows` yields it."""
    print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
    print(flush=True)


@functools.cache
def refuse_mixed_cuda(*folders):
    """Ends the program if CUDA libraries of two releases are installed into the same paths.

    TensorFlow's extra "and-cuda" installs one release and PyPI's torch a different one; both then
    load whichever was installed last. Packages are searched in `folders`, or in all of `sys.path`.
    """
    releases = {}
    for distribution in importlib.metadata.distributions(path=list(folders) or sys.path):
        name = distribution.metadata["Name"] or ""
        if match := re.fullmatch(r"(nvidia-.+)-cu\d+", name.lower()):
            releases.setdefault(match[1], set()).add(name)
    for names in releases.values():
        if len(names) > 1:
            sys.exit(
                "error: the extras bench and gpu must be installed into separate environments "
                "(or torch for CPUs with bench): their CUDA libraries replace each other. "
                f"Received: {' and '.join(sorted(names))}"
            )


def child_environment():
    """Returns the environment of processes that benchmarks start: quiet, with this checkout."""
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)}


def typed(flags):
    """Formats flags for a command line.

    Args:
        flags: name -> value; True for a flag without a value, None or False to omit the flag.
    """
    given = {
        name: value for name, value in flags.items() if value is not None and value is not False
    }
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items()]


def run(program, *given, environment=None, **flags):
    """Runs one of the project's programs; exits with an error if it fails.

    Args:
        program: the name of its file.
        *given: flags as they are typed.
        environment: variables to add to the environment, a dict.
        **flags: as for `typed`.

    Returns:
        The output of both streams.
    """
    refuse_mixed_cuda()
    command = command_of(program, *given, **flags)
    done = subprocess.run(
        command, env={**child_environment(), **(environment or {})},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout[-3000:]}")
    return done.stdout


def command_of(program, *given, **flags):
    """Returns the command line of a program; the arguments are as for `run`."""
    return [sys.executable, str(ROOT / program), *typed(flags), *given]


def results_of(program, output_dir, *given, **flags):
    """Returns the results in a program's folder, running the program if there are none."""
    from bert_tf.training.evaluation import read_results

    if not read_results(output_dir):
        run(program, *given, output_dir=output_dir, **flags)
    if not (results := read_results(output_dir)):  # a signal ends a program without an error
        sys.exit(f"error: {program} stopped before its results; the same command goes on")
    return results


def write_results(folder, results):
    """Writes a dict of numbers as eval_results.txt, and prints it."""
    os.makedirs(folder, exist_ok=True)
    text = "".join(f"{name} = {value}\n" for name, value in results.items())
    with atomic_write(os.path.join(folder, "eval_results.txt")) as file:
        file.write(text.encode())
    print(text, end="")
