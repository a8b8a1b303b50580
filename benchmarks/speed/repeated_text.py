"""Measures create_pretraining_data and its cost of counting and omitting repeated text.

    python -m benchmarks.speed.repeated_text \\
        --input_file='data/*.gz' --tokenizer_dir=reference_model -- --num_workers=2

Runs the whole program in turn for each choice of --drop_duplicates, with `SETTINGS` and the flags
after --. Prints a Markdown table with the median and the spread (interquartile range over the
median) of the seconds, and the peak memory of all processes (PSS, which counts shared memory once),
sampled several times a second.
"""

import contextlib
import functools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import (
    cells,
    child_environment,
    command_of,
    flag,
    launch,
    print_table,
    take_turns,
)

INTERVAL = 0.2  # seconds between two memory samples, which take a few milliseconds each
CHOICES = ("none", "documents", "lines")
HEADINGS = [
    "`--drop_duplicates`", "documents", "examples", "seconds", "spread", "of the first's seconds",
    "peak memory GiB",
]  # fmt: skip
SETTINGS = {
    "objective": "sop",
    "max_seq_length": 128,
    "max_predictions_per_seq": 19,
    "dupe_factor": 1,
    "num_workers": os.cpu_count(),
}
FLAGS = {
    "input_file": flag(str, "names or globs, comma-separated"),
    "tokenizer_dir": str,
    "work_dir": flag(None, "where there is room; the system's folder without it"),
}


class Run(NamedTuple):
    """The cost and the output of one run of the program."""

    seconds: float
    memory: float  # GiB
    output: str


def run(arguments, choice):
    """Runs the program in an empty folder, as it would skip finished work; returns a `Run`."""
    with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
        command = command_of(
            "create_pretraining_data.py", *arguments.flags, input_file=arguments.input_file,
            tokenizer_dir=arguments.tokenizer_dir, output_file=f"{folder}/out.tfrecord",
            drop_duplicates=choice, **SETTINGS,
        )  # fmt: skip
        began, peak = time.perf_counter(), 0
        # In a new process group, which identifies its workers.
        process = subprocess.Popen(
            command, env=child_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, process_group=0,
        )  # fmt: skip
        while process.poll() is None:
            peak = max(peak, memory_of_group(process.pid))
            time.sleep(INTERVAL)
        seconds = time.perf_counter() - began
    if process.returncode:
        sys.exit(f"error: {' '.join(command)} ended with status {process.returncode}")
    return Run(seconds, peak / 2**30, process.stdout.read())


def memory_of_group(group):
    """Returns the memory (PSS) of a process group in bytes."""
    total = 0
    for entry in os.listdir("/proc"):
        # A process may have ended since it was listed.
        with contextlib.suppress(OSError):
            if entry.isdigit() and os.getpgid(int(entry)) == group:
                text = Path(f"/proc/{entry}/smaps_rollup").read_text(encoding="ascii")
                total += int(re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE).group(1)) * 1024
    return total


def rows(runs):
    """Yields a row of the table for each choice."""
    seconds = {choice: [one.seconds for one in done] for choice, done in runs.items()}
    first = statistics.median(seconds[CHOICES[0]])
    for choice, done in runs.items():
        yield [
            choice,
            *(re.search(rf"([\d,]+) {of}", done[0].output)[1] for of in ("documents", "examples")),
            *cells(seconds[choice], ".1f"),
            f"{statistics.median(seconds[choice]) / first:.3f}",
            f"{max(one.memory for one in done):.2f}",
        ]


def main(arguments):
    """Measures the choices and prints the table."""
    runs = {choice: functools.partial(run, arguments, choice) for choice in CHOICES}
    print_table(HEADINGS, rows(take_turns(runs, arguments.rounds)))


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=3, passed_on=True)
