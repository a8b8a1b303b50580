"""Runs measured runs again, picked at random, for a comparison of their numbers.

    python -m run_scripts.reference.again --count=5 --seed=1

A run is repeated in a new folder. What its command reads must still be there: the task's data, the
vocabulary, the records, the pre-trained weights of the runs before it. Runs for which it is not, or
whose inputs several runs have written one after the other, are not picked. The ledger is not
changed.
"""

import collections
import dataclasses
import functools
import glob
import os
import random
import re
import shlex
import sys
from pathlib import Path

from bert_common.errors import InputError
from run_scripts.flags.declaration import flag
from run_scripts.flags.limits import MAX_SEED
from run_scripts.flags.parser import run_program
from run_scripts.reference.ledger import LEDGER, read_runs
from run_scripts.reference.measure import measure, read_scores
from run_scripts.reference.pages.statistics import sample
from run_scripts.reference.pages.tables import without_seed
from run_scripts.tools.glue_table import print_rows

OUTPUT_FLAG = "--output_dir="
OUTPUT_FLAGS = ("output_dir", "output_file")

# Their values are folders, even those without a slash.
FOLDER_FLAGS = ("model_dir", "init_checkpoint", "tokenizer_dir", "tasks_dir", "data_dir")

# The programs that write eval_results.txt: files without .py, modules.
MEASURING = (
    "run_pretraining", "run_classifier", "run_ner", "run_squad", "run_race",
    "run_scripts.reference.held_out", "benchmarks/choices/linear", "benchmarks/choices/bits",
    "benchmarks/choices/order",
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
    runs = read_runs(flags.ledger)
    picked = pick(runs, flags)
    repeated_ledger = os.path.join(flags.output_dir, "runs.jsonl")
    for number, run in enumerate(picked, 1):
        repeated = run.name in read_runs(repeated_ledger)
        print(f"\n== {number} of {len(picked)}: {run.name}", flush=True)
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
        print_rows(comparison(run, new, with_other_seeds(run, runs)))
        if repeated:
            print(f"not run again: repeated on {new.date}, code {new.code}, in {repeated_ledger}")
        if run.machine != new.machine:
            print(f"measured on {run.machine}; repeated on {new.machine}")


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
        return [named_run(runs, name) for name in flags.names.split(",")]
    most = flags.longest_hours * 3600
    possible = [run for run in runs.values() if run.seconds <= most and can_be_repeated(run)]
    here = [run for run in possible if not missing_inputs(run) and not replaced_inputs(run, runs)]
    print(f"{len(here)} of {len(possible)} runs can be repeated here; the others lack an input")
    if len(here) < flags.count:
        raise InputError(
            f"--count must be at most the runs of --longest_hours={flags.longest_hours:g} that can "
            f"be repeated here. Received: --count={flags.count}, {len(here)} runs in {flags.ledger}"
        )
    return random.Random(flags.seed).sample(here, flags.count)


def named_run(runs, name):
    """The run of a name; an `InputError` says why it cannot be repeated.

    Inputs that several runs have written are its user's concern.
    """
    if name not in runs or not can_be_repeated(runs[name]):
        raise InputError(
            "--names must be of runs in the ledger that write results into --output_dir. "
            f"Received: {name}"
        )
    if missing := missing_inputs(runs[name]):
        raise InputError(f"what {name} reads must be in this folder. Received: no {missing[0]}")
    return runs[name]


def can_be_repeated(run):
    """Whether a run's numbers are those that its program writes into eval_results.txt."""
    words = shlex.split(run.command)
    writes = sum(word.startswith(OUTPUT_FLAG) for word in words) == 1
    is_trial = any(part.startswith("trial") for part in run.name.split("/"))  # of speed alone
    return writes and not is_trial and any(w.removesuffix(".py") in MEASURING for w in words)


def missing_inputs(run):
    """The files and folders that a run's command reads and that are not there, a list."""
    # Of a checkpoint the command has the beginning of its files' names.
    return [p for p in inputs_of(run) if not glob.glob(p) and not os.path.exists(f"{p}.index")]


def replaced_inputs(run, runs):
    """The inputs of a run that more than one run of the ledger has written, a list.

    What lies in a folder that several have written counts too.
    """
    written = collections.Counter(path for each in runs.values() for path in outputs_of(each))
    return [
        path
        for path in inputs_of(run)
        if any(written[str(place)] > 1 for place in (path, *Path(path).parents))
    ]


def inputs_of(run):
    """The files and folders in a run's command that it does not write, a list."""
    return [
        path
        for name, value in flags_of(run)
        if name not in OUTPUT_FLAGS
        for path in re.split("[,:]", value)  # several paths, or the parts of a model
        if name in FOLDER_FLAGS or "/" in path
    ]


def outputs_of(run):
    """The files and folders that a run's command writes, a list."""
    return [value for name, value in flags_of(run) if name in OUTPUT_FLAGS]


def flags_of(run):
    """The flags of a run's command, a list of names and values."""
    words = [word for word in shlex.split(run.command) if word.startswith("--")]
    return [tuple(word.removeprefix("--").split("=", 1)) for word in words if "=" in word]


def redirected(command, folder):
    """A command, as a list, whose program writes into another folder."""
    words = shlex.split(command)
    return [f"{OUTPUT_FLAG}{folder}" if w.startswith(OUTPUT_FLAG) else w for w in words]


def with_other_seeds(run, runs):
    """The runs of a ledger that differ from one in their seeds alone, itself included."""
    group, _ = without_seed(run.name)
    return [each for name, each in runs.items() if without_seed(name)[0] == group]


def comparison(old, new, seeds):
    """The rows of a table of two runs: scores, seconds, memory.

    Args:
        old, new: the `Run`s.
        seeds: those that `with_other_seeds` finds, whose standard deviations stand beside.
    """
    rows = [("", "ledger", "again", "difference", "deviation of seeds")]
    pairs = {name: (score, new.scores.get(name)) for name, score in old.scores.items()}
    pairs["seconds"] = old.seconds, new.seconds
    pairs["memory, GiB"] = old.memory_gib, new.memory_gib
    for name, values in pairs.items():
        shown = ["–" if value is None else f"{value:.6g}" for value in values]
        difference = "" if None in values else f"{values[1] - values[0]:+.3g}"
        found = sample([run.scores.get(name) for run in seeds])
        spread = "" if found is None or found.deviation is None else f"{found.deviation:.2g}"
        rows.append((name, *shown, difference, spread))
    return rows


if __name__ == "__main__":
    sys.exit(main())
