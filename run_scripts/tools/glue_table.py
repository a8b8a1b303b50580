"""Prints what a model reached in the tasks of a benchmark: one table."""

import dataclasses
import os
import statistics
import sys

from bert_common.errors import InputError
from finetuning.readers import read_lines
from run_scripts.flags.declaration import flag
from run_scripts.flags.parser import run_program
from run_scripts.tools.glue_plan import BENCHMARKS, row_of

# What gluebenchmark.com counts, where that is not all that is measured here.
GLUE_COUNTED = {"cola": ("matthews",)}

# As arXiv:1810.04805, appendix B.1: what was trained did worse there than the more frequent label.
GLUE_NOT_COUNTED = ("wnli",)


@dataclasses.dataclass(frozen=True)
class TableFlags:
    """Prints the results of all tasks of a benchmark that were fine-tuned."""

    benchmark: str = flag(None, "Which tasks.", required=True, choices=tuple(BENCHMARKS))
    output_dir: str = flag(None, "The folder with a folder of each task.", required=True)


def main(argv=None):
    """The program; returns the exit status."""
    return run_program(show_table, TableFlags, argv)


def show_table(values):
    """Prints the table; below that of GLUE its average."""
    read = {
        task: read_numbers(os.path.join(values.output_dir, task))
        for task in BENCHMARKS[values.benchmark]
    }
    found = {task: numbers for task, numbers in read.items() if numbers}
    if not found:
        raise InputError(
            "--output_dir must hold the folder of a task with eval_results.txt. Received: "
            f"{values.output_dir}"
        )
    rows = [("task", "split", "metrics", "times 100", "without a model")]
    for task, numbers in found.items():
        rows += task_rows(task, numbers)
    print_rows(rows)
    if len(found) < len(read):
        print(f"without results: {', '.join(task for task in read if task not in found)}")
    if values.benchmark == "glue":
        print(glue_average(found))


def read_numbers(folder):
    """The results of a task.

    Args:
        folder: of a fine-tuned model, with eval_results.txt; or of several trainings, with
            seeds.tsv.

    Returns:
        A dict: name -> mean and standard deviation, which is None for one training. Empty if there
        are no results.
    """
    single, seeds = (os.path.join(folder, name) for name in ("eval_results.txt", "seeds.tsv"))
    if os.path.exists(seeds):
        lines, read = list(read_lines(seeds))[1:], mean_of_line
    elif os.path.exists(single):
        lines, read = read_lines(single), number_of_line
    else:
        return {}
    numbers = {}
    for where, line in lines:
        try:
            name, number = read(line)
        except ValueError:
            raise InputError(
                f"{where} must hold a name and its number. Received: {line!r}"
            ) from None
        numbers[name] = number
    return numbers


def mean_of_line(line):
    """The name, the mean and the standard deviation of a line of seeds.tsv."""
    name, mean, deviation, *_ = line.split("\t")
    return name, (float(mean), float(deviation))


def number_of_line(line):
    """The name and the number of a line of eval_results.txt."""
    name, value = line.split(" = ")
    return name, (float(value), None)


def find_score(task, numbers, name):
    """One of the results of a task.

    Raises:
        InputError: it is not among them.
    """
    if name not in numbers:
        raise InputError(f"the results of {task} must hold {name}. Received: {', '.join(numbers)}")
    return numbers[name]


def task_rows(task, numbers):
    """A row of cells for each split that a task was measured on."""
    rows = []
    metrics = row_of(task).metrics
    for i, split in enumerate(row_of(task).splits):
        # The results of the first split lead, under Google's names.
        prefix = split if i else "eval"
        scores = [shown(*find_score(task, numbers, f"{prefix}_{metric}")) for metric in metrics]
        plain = [numbers.get(f"baseline_{metric}") for metric in metrics] if not i else []
        plain = [shown(*number) for number in plain if number]
        rows.append((task, split, *map(" / ".join, (metrics, scores, plain))))
    return rows


def shown(value, deviation):
    """A number of the table."""
    return f"{100 * value:.2f}" + (f" ± {100 * deviation:.2f}" if deviation is not None else "")


def print_rows(rows):
    """Prints a table, the first row of it the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        print(f"| {' | '.join(line)} |")


def glue_average(found):
    """The line with GLUE's average: the mean over tasks, a task's several numbers averaged first.

    MNLI's matched and mismatched are two numbers of one task, as on gluebenchmark.com.

    Args:
        found: task -> its results, as `read_numbers` gives them.
    """
    counted = [task for task in BENCHMARKS["glue"] if task not in GLUE_NOT_COUNTED]
    scores = [task_score(task, found[task]) for task in counted if task in found]
    if not scores:
        return "GLUE average: none of its tasks is there"
    missing = [task for task in counted if task not in found]
    line = f"GLUE average: {100 * statistics.mean(scores):.2f} over {len(scores)} tasks"
    if missing:
        line += f", which is no average of GLUE: without {', '.join(missing)}"
    return (
        f"{line}\n(a task's several numbers averaged first, of CoLA Matthews' correlation alone; "
        "WNLI does not count, as in BERT's paper; the site measures the test sets)"
    )


def task_score(task, numbers):
    """The mean of what counts of a GLUE task."""
    metrics = GLUE_COUNTED.get(task, row_of(task).metrics)
    prefixes = ["eval", *row_of(task).splits[1:]]
    return statistics.mean(
        find_score(task, numbers, f"{prefix}_{metric}")[0]
        for prefix in prefixes
        for metric in metrics
    )


if __name__ == "__main__":
    sys.exit(main())
