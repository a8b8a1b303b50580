"""Measures what counting repeated text costs, and leaving it out; and whether kills change a byte.

    python -m benchmarks.speed.repeated_text \\
        --input_file='data/*.gz' --tokenizer_dir=reference_model
    python -m benchmarks.speed.repeated_text [the same] --baseline=../before

Joins the texts (plain or gzip), runs the whole program for each choice of --drop_duplicates, by
turns, and prints a Markdown table with the median and the spread (interquartile range over the
median) of the seconds, and the largest memory (PSS of all processes). A checkout named by
--baseline runs beside them with the same flags but that one, for example a version that counts
nothing. Then, unless --kills=0, a run is killed three times (SIGKILL to all processes) and started
again, and its files are compared with the files of an undisturbed run.
"""

import contextlib
import glob
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import ROOT, argument_parser, median_and_spread, print_table
from benchmarks.speed.data_creation import INTERVAL, memory_of_group

CHOICES = ("none", "documents", "lines")
HEADINGS = [
    "`--drop_duplicates`", "documents", "examples", "seconds", "spread", "of the seconds without",
    "peak memory GiB",
]  # fmt: skip
WITHOUT = "without counting"


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


def command(arguments, text, folder, choice, program=ROOT):
    """The command line of a run, without the choice for another version."""
    return [
        sys.executable,
        str(Path(program) / "create_pretraining_data.py"),
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


def start(parts, program=ROOT):
    """Starts the program in a process group of its own, by which its workers are found."""
    environment = {**os.environ, "PYTHONPATH": str(program)}
    return subprocess.Popen(
        parts, cwd=program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, process_group=0,
    )  # fmt: skip


def run(parts, program=ROOT):
    """Runs the program to its end: a `Run`."""
    began, peak = time.perf_counter(), 0
    process = start(parts, program)
    while process.poll() is None:
        peak = max(peak, memory_of_group(process.pid))
        time.sleep(INTERVAL)
    seconds = time.perf_counter() - began
    output = process.stdout.read()
    if process.returncode:
        sys.exit(f"error: {' '.join(parts)} ended with status {process.returncode}")
    return Run(seconds, peak / 2**30, output)


def measure(arguments, text):
    """Runs all choices by turns: choice -> its runs."""
    versions = {WITHOUT: arguments.baseline} if arguments.baseline else {}
    versions |= dict.fromkeys(CHOICES, ROOT)
    runs = {choice: [] for choice in versions}
    for _ in range(arguments.repeats):
        for choice, program in versions.items():
            program = Path(program).resolve()
            with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
                parts = command(arguments, text, folder, choice, program)
                runs[choice].append(run(parts, program))
    return runs


def rows(runs):
    """A row of the table for each choice."""
    medians = {
        choice: median_and_spread([one.seconds for one in done]) for choice, done in runs.items()
    }
    first = next(iter(medians))
    for choice, done in runs.items():
        median, spread = medians[choice]
        output = done[0].output
        yield [
            choice,
            re.search(r"([\d,]+) documents", output).group(1),
            re.search(r"([\d,]+) examples", output).group(1),
            f"{median:.1f}",
            f"{spread:.0%}",
            f"{median / medians[first][0]:.3f}",
            f"{max(one.memory for one in done):.2f}",
        ]


# Files of the work folder and the share of the chunks that have one when a run is killed: while
# lines are hashed, while examples are made, soon before the record files are written.
MOMENTS = (("hashes", 0.3), ("chunk", 0.4), ("chunk", 0.9))


def check_kills(arguments, text, chunks):
    """Kills a run three times, starts it again, and compares: the rows of a table."""
    with contextlib.ExitStack() as stack:
        whole, killed = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(dir=arguments.work_dir)))
            for _ in "ab"
        )
        run(command(arguments, text, whole, "lines"))
        moments = []
        for name, share in MOMENTS:
            process = start(command(arguments, text, killed, "lines"))
            found = 0
            while process.poll() is None and found < share * chunks:
                time.sleep(0.005)
                found = len(list(killed.glob(f".*.work/{name}-??????")))
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            moments.append(f"{found} of {chunks} files of {name}")
        run(command(arguments, text, killed, "lines"))
        same = all(
            (killed / name).read_bytes() == (whole / name).read_bytes()
            for name in ("out.tfrecord", "out.json")
        )
    return [["; ".join(moments), "equal" if same else "DIFFERENT"]]


def main():
    """Measures, and prints the tables."""
    parser = argument_parser(__doc__)
    parser.add_argument("--input_file", required=True, help="names or globs, comma-separated")
    parser.add_argument("--tokenizer_dir", required=True)
    parser.add_argument("--baseline", help="a checkout of another version, to run beside this one")
    parser.add_argument("--objective", default="sop")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--dupe_factor", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kills", type=int, choices=(0, 3), default=3)
    parser.add_argument("--work_dir", help="where there is room; the system's folder without it")
    parser.add_argument("--flags", default="", help="more flags of create_pretraining_data")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
        text = os.path.join(folder, "text.txt")
        print(f"{join_texts(arguments.input_file, text) / 1e6:.1f} MB of text\n", flush=True)
        runs = measure(arguments, text)
        print_table(HEADINGS, rows(runs))
        print(f"\n{runs['lines'][0].output.splitlines()[-2]}")
        if arguments.kills:
            chunks = int(
                re.search(r"in ([\d,]+) chunk", runs["lines"][0].output)[1].replace(",", "")
            )
            print()
            print_table(["killed at", "files"], check_kills(arguments, text, chunks))


if __name__ == "__main__":
    main()
