"""Runs measured runs again, picked at random, for a comparison of their numbers.

    python -m run_scripts.reference.again --count=5 --seed=1

A run is repeated in a new folder, with what its command reads still there: the vocabulary, the
records, the pre-trained weights of the runs before it. The ledger is not changed.
"""

import dataclasses
import functools
import os
import random
import shlex
import sys

from bert_common.errors import InputError
from run_scripts.flags.declaration import flag
from run_scripts.flags.limits import MAX_SEED
from run_scripts.flags.parser import run_program
from run_scripts.reference.ledger import LEDGER, read_runs, this_machine
from run_scripts.reference.measure import measure, read_scores
from run_scripts.tools.glue_table import print_rows

OUTPUT_FLAG = "--output_dir="

# The programs that write eval_results.txt: files without .py, modules.
MEASURING = (
    "run_pretraining", "run_classifier", "run_ner", "run_squad", "run_race",
    "run_scripts.reference.held_out", "benchmarks/choices/linear", "benchmarks/choices/bits",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class AgainFlags:
    """Runs some of the measured runs again, for a comparison with the ledger."""

    ledger: str = flag(str(LEDGER), "The ledger of the measured runs.")
    output_dir: str = flag("output/again", "The folder for what the repeated runs write.")
    count: int = flag(5, "How many runs are picked.", least=1, most=100_000)
    seed: int = flag(1, "Determines which.", least=0, most=MAX_SEED)
    longest_hours: float = flag(2.0, "Only runs that took at most so long.", above=0, most=100_000)
    names: str = flag(None, "Instead of picking at random: names, comma-separated.")


def main(argv=None):
    """The program; returns the exit status."""
    return run_program(run_again, AgainFlags, argv)


def run_again(flags):
    """Repeats the picked runs, then prints a table for each."""
    runs = pick(read_runs(flags.ledger), flags)
    repeated_ledger = os.path.join(flags.output_dir, "runs.jsonl")
    for number, run in enumerate(runs, 1):
        print(f"\n== {number} of {len(runs)}: {run.name}", flush=True)
        folder = os.path.join(flags.output_dir, run.name)
        new = measure(
            run.name,
            redirected(run.command, folder),
            functools.partial(read_scores, folder),
            ledger=repeated_ledger,
            work_dir=os.path.join(flags.output_dir, "unfinished"),
            seed=run.seed,
        )
        print()
        print_rows(comparison(run, new))
        if run.machine != this_machine():
            print(f"measured on {run.machine}; repeated on {this_machine()}")


def pick(runs, flags):
    """The runs to repeat, a list.

    Args:
        runs: a dict name -> `Run`.
        flags: `AgainFlags`.

    Raises:
        InputError: a name is unknown, or its run cannot be repeated; fewer runs than are to be
            picked.
    """
    if flags.names:
        for name in flags.names.split(","):
            if name not in runs or not can_be_repeated(runs[name]):
                raise InputError(
                    "--names must be of runs in the ledger that write results into --output_dir. "
                    f"Received: {name}"
                )
        return [runs[name] for name in flags.names.split(",")]
    most = flags.longest_hours * 3600
    possible = [run for run in runs.values() if run.seconds <= most and can_be_repeated(run)]
    if len(possible) < flags.count:
        raise InputError(
            f"--count must be at most the runs of --longest_hours={flags.longest_hours:g}. "
            f"Received: --count={flags.count}, {len(possible)} runs in {flags.ledger}"
        )
    return random.Random(flags.seed).sample(possible, flags.count)


def can_be_repeated(run):
    """Whether a run's numbers are those that its program writes into eval_results.txt."""
    words = shlex.split(run.command)
    writes = sum(word.startswith(OUTPUT_FLAG) for word in words) == 1
    return writes and any(word.removesuffix(".py") in MEASURING for word in words)


def redirected(command, folder):
    """A command, as a list, whose program writes into another folder."""
    words = shlex.split(command)
    return [f"{OUTPUT_FLAG}{folder}" if w.startswith(OUTPUT_FLAG) else w for w in words]


def comparison(old, new):
    """The rows of a table of two runs: scores, seconds, memory."""
    rows = [("", "ledger", "again", "difference")]
    pairs = {name: (score, new.scores.get(name)) for name, score in old.scores.items()}
    pairs["seconds"] = old.seconds, new.seconds
    pairs["memory, GiB"] = old.memory_gib, new.memory_gib
    for name, values in pairs.items():
        shown = ["–" if value is None else f"{value:.6g}" for value in values]
        difference = "" if None in values else f"{values[1] - values[0]:+.3g}"
        rows.append((name, *shown, difference))
    return rows


if __name__ == "__main__":
    sys.exit(main())
