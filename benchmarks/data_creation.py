"""Measures create_pretraining_data: examples/s, input MB/s, peak memory.

    python benchmarks/data_creation.py --input_file=corpus.txt --vocab_file=vocab.txt

Runs the whole program, imports included, in a process of its own for each objective; prints a
Markdown table with the median and the spread (quartiles over the median) of the seconds; memory is
that of the largest of the processes.
"""

import argparse
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(arguments, objective):
    """Seconds, examples of one run."""
    with tempfile.TemporaryDirectory() as folder:
        return run_in(folder, arguments, objective)


def run_in(folder, arguments, objective):
    """The same, its files in a folder that is empty: what is there is not made again."""
    command = [
        sys.executable,
        str(ROOT / "create_pretraining_data.py"),
        f"--input_file={arguments.input_file}",
        f"--vocab_file={arguments.vocab_file}",
        "--tokenizer=korean",
        f"--output_file={folder}/out.tfrecord",
        f"--objective={objective}",
        "--max_seq_length=128",
        f"--dupe_factor={arguments.dupe_factor}",
    ]
    start = time.perf_counter()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, int(re.search(r"(\d+) examples,", out).group(1))


def main():
    """Measures, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input_file", required=True)
    parser.add_argument("--vocab_file", required=True)
    parser.add_argument("--dupe_factor", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    size = Path(arguments.input_file).stat().st_size / 1e6
    print("| objective | examples | seconds | spread | examples/s | MB/s | peak memory GiB |")
    print("|---|---|---|---|---|---|---|")
    for objective in ("nsp", "sop"):
        runs = [run(arguments, objective) for _ in range(arguments.repeats)]
        seconds = sorted(seconds for seconds, _ in runs)
        low, median, high = statistics.quantiles(seconds, n=4)
        examples = runs[0][1]
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        print(
            f"| {objective} | {examples} | {median:.1f} | {(high - low) / median:.0%} | "
            f"{examples / median:.0f} | {size / median:.2f} | {memory:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
