"""Measures create_pretraining_data: examples/s, input MB/s, peak memory.

    python -m benchmarks.speed.data_creation --input_file=corpus.txt --tokenizer_dir=vocab
    python -m benchmarks.speed.data_creation [the same] --times=10 --repeats=1       a larger text

Runs the whole program, including its start, for each objective; prints a Markdown table with the
median and the spread (interquartile range over the median) of the seconds. Memory counts all
processes (the sum of PSS, which counts shared memory once), sampled several times a second. With
--times the text is repeated with changes: documents in another order, each starting at another of
its sentences, with other digits.
"""

import argparse
import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import ROOT, median_and_spread, one_of, print_table
from create_pretraining_data.instances.pairs import OBJECTIVES

INTERVAL = 0.2  # seconds between two samples of the memory, which cost a few milliseconds each
HEADINGS = [
    "objective", "examples", "seconds", "spread", "examples/s", "MB/s", "peak memory GiB",
]  # fmt: skip


class Run(NamedTuple):
    """The cost of one run of the program."""

    seconds: float
    examples: int
    memory: float  # GiB


def enlarge(path, times, target):
    """Writes a text that is about `times` times as long."""
    documents = Path(path).read_text(encoding="utf-8").strip("\n").split("\n\n")
    with open(target, "w", encoding="utf-8") as file:
        for seed in range(times):
            rng = random.Random(seed)
            rng.shuffle(documents)
            digits = str.maketrans("0123456789", "".join(rng.sample("0123456789", 10)))
            for document in documents:
                lines = document.translate(digits).split("\n")
                first = rng.randrange(len(lines))
                file.write("\n".join(lines[first:] + lines[:first]) + "\n\n")


def run(arguments, text, objective):
    """Runs the program once, in an empty folder, as it does not repeat finished work."""
    with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
        command = [
            sys.executable,
            str(ROOT / "create_pretraining_data.py"),
            f"--input_file={text}",
            f"--tokenizer_dir={arguments.tokenizer_dir}",
            f"--output_file={folder}/out.tfrecord",
            f"--objective={objective}",
            f"--max_seq_length={arguments.length}",
            f"--max_predictions_per_seq={round(0.15 * arguments.length)}",
            f"--dupe_factor={arguments.dupe_factor}",
            f"--num_workers={arguments.workers}",
            *arguments.flags.split(),
        ]
        start, peak = time.perf_counter(), 0
        # In a new process group, by which its workers are found.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
        while process.poll() is None:
            peak = max(peak, memory_of_group(process.pid))
            time.sleep(INTERVAL)
        seconds = time.perf_counter() - start
    out = process.stdout.read()
    if process.returncode:
        sys.exit(f"error: the program ended with status {process.returncode}")
    return Run(seconds, int(re.search(r"(\d+) examples", out).group(1)), peak / 2**30)


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


def main():
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input_file", required=True)
    parser.add_argument("--tokenizer_dir", required=True)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--dupe_factor", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--objectives", type=one_of(*OBJECTIVES), default=["nsp", "sop"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--times", type=int, default=1, help="make the text so much longer first")
    parser.add_argument("--work_dir", help="where there is room; the system's folder without it")
    parser.add_argument("--flags", default="", help="more flags of create_pretraining_data")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
        text = arguments.input_file
        if arguments.times > 1:
            text = os.path.join(folder, "text.txt")
            enlarge(arguments.input_file, arguments.times, text)
        print_table(HEADINGS, rows(arguments, text))


def rows(arguments, text):
    """A row of the table for each objective."""
    megabytes = os.path.getsize(text) / 1e6
    for objective in arguments.objectives:
        runs = [run(arguments, text, objective) for _ in range(arguments.repeats)]
        median, spread = median_and_spread([one.seconds for one in runs])
        yield [
            objective,
            str(runs[0].examples),
            f"{median:.1f}",
            f"{spread:.0%}",
            f"{runs[0].examples / median:.0f}",
            f"{megabytes / median:.2f}",
            f"{max(one.memory for one in runs):.2f}",
        ]


if __name__ == "__main__":
    main()
