"""Prints a model's results on the tasks of a benchmark as a table."""

import os
import statistics
from collections.abc import Mapping, Sequence

from bert_common.errors import InputError
from finetuning.tables import read_lines
from run_scripts.flags.finetune import TRAIN_PART
from run_scripts.tools.glue_plan import BENCHMARKS, find_task

# The mean, and the standard deviation of several runs or None for one run.
Score = tuple[float, float | None]

# The metrics that count for GLUE's average, for tasks with more metrics here.
GLUE_COUNTED = {"cola": ("matthews",)}

# As in arXiv:1810.04805, appendix B.1: trained models do worse than the majority label.
GLUE_NOT_COUNTED = ("wnli",)


def show_table(benchmark: str, output_dir: str) -> None:
    """Prints the table and, for GLUE, the average below it.

    `output_dir` has a folder with results for at least one task.
    """
    results = {name: read_results(os.path.join(output_dir, name)) for name in BENCHMARKS[benchmark]}
    missing = [name for name, scores in results.items() if not scores]
    results = {name: scores for name, scores in results.items() if scores}
    rows: list[tuple[str, ...]] = [("task", "split", "metrics", "times 100", "without a model")]
    for name, scores in results.items():
        rows += task_rows(name, scores)
    print_rows(rows)
    if missing:
        print(f"without results: {', '.join(missing)}")
    if benchmark == "glue":
        print(glue_average(results))


def read_results(folder: str) -> dict[str, Score]:
    """Reads the results of a task: name -> (mean, standard deviation), the latter None for one run.

    The folder is of one training run, with eval_results.txt, or of several, with seeds.tsv.
    """
    single, seeds = (os.path.join(folder, name) for name in ("eval_results.txt", "seeds.tsv"))
    are_several = os.path.exists(seeds)
    if not are_several and not os.path.exists(single):
        return {}
    scores: dict[str, Score] = {}
    for where, line in list(read_lines(seeds))[1:] if are_several else read_lines(single):
        try:
            if are_several:
                name, mean, deviation, *_ = line.split("\t")
                scores[name] = float(mean), float(deviation)
            else:
                name, mean = line.split(" = ")
                scores[name] = float(mean), None
        except ValueError:
            raise InputError(
                f"{where} must hold a name and its number (delete the file and evaluate again). "
                f"Received: {line!r}"
            ) from None
    return scores


def find_score(task: str, scores: Mapping[str, Score], name: str) -> Score:
    """Looks up a result of a task; raises an `InputError` if it is missing."""
    if name not in scores:
        raise InputError(f"the results of {task} must hold {name}. Received: {', '.join(scores)}")
    return scores[name]


def find_prefixes(task: str, scores: Mapping[str, Score]) -> dict[str, str]:
    """Returns each split on which a task was evaluated -> the prefix of its results' names."""
    found = find_task(task)
    if f"{TRAIN_PART}_{found.metrics[0]}" in scores:
        return {TRAIN_PART: TRAIN_PART}
    # The results of the first of the task's own splits have Google's names.
    return {split: split if i else "eval" for i, split in enumerate(found.splits)}


def task_rows(name: str, scores: Mapping[str, Score]) -> list[tuple[str, ...]]:
    """Creates a row of cells for each split on which a task was evaluated."""
    rows, task = [], find_task(name)
    for i, (split, prefix) in enumerate(find_prefixes(name, scores).items()):
        cells = [
            format_score(*find_score(name, scores, f"{prefix}_{metric}"), task.scale)
            for metric in task.metrics
        ]
        baselines = [scores.get(f"baseline_{metric}") for metric in task.metrics] if not i else []
        baselines = [format_score(*score, task.scale) for score in baselines if score]
        rows.append((name, split, *map(" / ".join, (task.metrics, cells, baselines))))
    return rows


def format_score(value: float, deviation: float | None, scale: float) -> str:
    """Formats a score times `scale`, with its standard deviation if there is one."""
    return f"{scale * value:.2f}" + (f" ± {scale * deviation:.2f}" if deviation is not None else "")


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Prints a table whose first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        print(f"| {' | '.join(line)} |")


def glue_average(results: Mapping[str, Mapping[str, Score]]) -> str:
    """Describes GLUE's average, the mean over tasks of the mean over a task's scores.

    MNLI's matched and mismatched are two scores of one task, as on gluebenchmark.com.
    """
    counted = [name for name in BENCHMARKS["glue"] if name not in GLUE_NOT_COUNTED]
    means = [mean_score(name, results[name]) for name in counted if name in results]
    if not means:
        return "GLUE average: no results of its tasks"
    missing = [name for name in counted if name not in results]
    parts = [n for n in counted if n in results and TRAIN_PART in find_prefixes(n, results[n])]
    line = f"GLUE average: {100 * statistics.mean(means):.2f} over {len(means)} tasks"
    lacks = [f"without {', '.join(missing)}"] if missing else []
    lacks += [f"on {TRAIN_PART} of {', '.join(parts)}"] if parts else []
    if lacks:
        line += f", which is not the full GLUE average: {'; '.join(lacks)}"
    return (
        f"{line}\n(a task's scores are averaged first; for CoLA only Matthews' correlation counts; "
        "WNLI does not count, as in BERT's paper; gluebenchmark.com uses the test sets)"
    )


def mean_score(name: str, scores: Mapping[str, Score]) -> float:
    """Returns the mean of a GLUE task's scores that count for the average."""
    metrics = GLUE_COUNTED.get(name, find_task(name).metrics)
    return statistics.mean(
        find_score(name, scores, f"{prefix}_{metric}")[0]
        for prefix in find_prefixes(name, scores).values()
        for metric in metrics
    )
