"""Measures create_pretraining_data, and what counting and leaving out repeated text costs.

    python -m benchmarks.speed.repeated_text \\
        --input_file='data/*.gz' --tokenizer_dir=reference_model
    python -m benchmarks.speed.repeated_text [the same] --baseline=../before

Joins the texts (plain or gzip), runs the whole program for each choice of --drop_duplicates, by
turns, and prints a Markdown table with the median and the spread (interquartile range over the
median) of the seconds, and the largest memory: of all processes (PSS, which counts shared memory
once), sampled several times a second. A checkout named by --baseline runs beside them with the same
flags but that one, for example a version that counts nothing.
"""

import contextlib
import functools
import glob
import gzip
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import ROOT, cells, flag, launch, print_table, take_turns

INTERVAL = 0.2  # seconds between two samples of the memory, which cost a few milliseconds each
CHOICES = ("none", "documents", "lines")
HEADINGS = [
    "`--drop_duplicates`", "documents", "examples", "seconds", "spread", "of the seconds without",
    "peak memory GiB",
]  # fmt: skip
WITHOUT = "without counting"
FLAGS = {
    "input_file": flag(str, "names or globs, comma-separated"),
    "tokenizer_dir": str,
    "baseline": flag(None, "a checkout of another version, to run beside this one"),
    "objective": "sop",
    "length": 128,
    "dupe_factor": 5,
    "workers": os.cpu_count(),
    "work_dir": flag(None, "where there is room; the system's folder without it"),
    "flags": flag("", "more flags of create_pretraining_data"),
}


class Run(NamedTuple):
    """What one run of the program cost and said."""

    seconds: float
    memory: float  # GiB
    output: str


def join_texts(names, target):
    """Writes the texts one after the other, with a blank line between them; their bytes."""
    paths = [path for name in names.split(",") for path in sorted(glob.glob(name)) or [name]]
    with open(target, "wb") as file:
        for path in paths:
            opener = gzip.open if path.endswith(".gz") else open
            with opener(path, "rb") as text:
                shutil.copyfileobj(text, file)
            file.write(b"\n\n")
    return os.path.getsize(target)


def run(arguments, text, choice, checkout):
    """Runs a checkout's program in an empty folder, as finished work is not repeated: a `Run`."""
    checkout = Path(checkout).resolve()
    with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
        command = [
            sys.executable,
            str(checkout / "create_pretraining_data.py"),
            f"--input_file={text}",
            f"--tokenizer_dir={os.path.abspath(arguments.tokenizer_dir)}",
            f"--output_file={folder}/out.tfrecord",
            f"--objective={arguments.objective}",
            f"--max_seq_length={arguments.length}",
            f"--max_predictions_per_seq={round(0.15 * arguments.length)}",
            f"--dupe_factor={arguments.dupe_factor}",
            f"--num_workers={arguments.workers}",
            *([] if choice == WITHOUT else [f"--drop_duplicates={choice}"]),
            *arguments.flags.split(),
        ]
        began, peak = time.perf_counter(), 0
        # In a new process group, by which its workers are found.
        process = subprocess.Popen(
            command, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=0,
        )  # fmt: skip
        while process.poll() is None:
            peak = max(peak, memory_of_group(process.pid))
            time.sleep(INTERVAL)
        seconds = time.perf_counter() - began
    if process.returncode:
        sys.exit(f"error: {' '.join(command)} ended with status {process.returncode}")
    return Run(seconds, peak / 2**30, process.stdout.read())


def memory_of_group(group):
    """The memory of a group of processes in bytes (PSS)."""
    total = 0
    for entry in os.listdir("/proc"):
        # A process may have ended since it was listed.
        with contextlib.suppress(OSError):
            if entry.isdigit() and os.getpgid(int(entry)) == group:
                text = Path(f"/proc/{entry}/smaps_rollup").read_text(encoding="ascii")
                total += int(re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE).group(1)) * 1024
    return total


def rows(runs):
    """A row of the table for each choice."""
    seconds = {choice: [one.seconds for one in done] for choice, done in runs.items()}
    first = statistics.median(next(iter(seconds.values())))
    for choice, done in runs.items():
        yield [
            choice,
            *(re.search(rf"([\d,]+) {of}", done[0].output)[1] for of in ("documents", "examples")),
            *cells(seconds[choice], ".1f"),
            f"{statistics.median(seconds[choice]) / first:.3f}",
            f"{max(one.memory for one in done):.2f}",
        ]


def main(arguments):
    """Measures, and prints the table."""
    with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
        text = os.path.join(folder, "text.txt")
        print(f"{join_texts(arguments.input_file, text) / 1e6:.1f} MB of text\n", flush=True)
        checkouts = {WITHOUT: arguments.baseline} if arguments.baseline else {}
        checkouts |= dict.fromkeys(CHOICES, ROOT)
        runs = {
            choice: functools.partial(run, arguments, text, choice, checkout)
            for choice, checkout in checkouts.items()
        }
        done = take_turns(runs, arguments.rounds)
    print_table(HEADINGS, rows(done))
    print(f"\n{done['lines'][0].output.splitlines()[-2]}")


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=3)
