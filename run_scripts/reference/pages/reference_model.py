"""Describes a reference run: what its stages took, its tasks."""

import re
from typing import NamedTuple

from run_scripts.reference.pages.questions import Cell, Question
from run_scripts.reference.pages.tables import (
    cpu_time,
    duration,
    label,
    machine_letters,
    markdown_table,
    number,
    peak_memory,
    question_samples,
    question_sentences,
    run_lines,
    score_text,
    shown_sample,
)
from run_scripts.reference.stages import BEGINNINGS
from run_scripts.tools.glue_plan import find_task

# A stage, the first part of its name -> the scores that the table of costs shows.
SHOWN_SCORES = {
    "text": (
        "documents",
        "reviews",
        "held_out_documents",
        "left_out_documents",
        "left_out_reviews",
        "megabytes",
    ),
    "vocabulary": ("pieces",),
    "records": ("records", "megabytes"),
    "trial": ("seconds_per_update",),
    "positions": ("positions", "trained_positions"),
    "pretraining": ("global_step", "seconds_per_update"),
    "heldout": ("examples",),
    "order": ("examples",),
    "export": ("megabytes",),
}

# The name of a run on a task: the reference run, a beginning, the task, the seed.
TASK_RUN = re.compile(rf"([^/]+)/({'|'.join(BEGINNINGS)})/([^/]+)/seed\d+")


def stage_runs(results, reference):
    """The runs of a reference run that are no tasks: a dict name of the stage -> `Run`."""
    prefix = f"{reference}/"
    runs = {name.removeprefix(prefix): run for name, run in results.runs.items()
            if name.startswith(prefix)}  # fmt: skip
    return {name: run for name, run in runs.items() if name.split("/")[0] in SHOWN_SCORES}


def cost_lines(results, reference, wording):
    """A table of the stages with their sum, folded away; nothing where there are only tasks."""
    runs = stage_runs(results, reference)
    if not runs:
        return []
    letters = machine_letters(results.runs)
    rows = []
    for name, run in runs.items():
        stage, _, detail = name.partition("/")
        shown = wording.list_comma.join(
            f"{label(score, wording)} {number(run.scores[score])}"
            for score in SHOWN_SCORES[stage]
            if run.scores.get(score) is not None
        )
        rows.append([
            f"{wording.stages.get(stage, stage)} {detail}".strip(),
            shown,
            duration(run.seconds, wording),
            cpu_time([run], wording),
            peak_memory([run], wording),
            letters[run.machine],
            wording.none if run.seed is None else run.seed,
            run.code or wording.none,
        ])  # fmt: skip
    total = wording.total.format(
        time=duration(sum(run.seconds for run in runs.values()), wording),
        cpu=cpu_time(runs.values(), wording),
    )
    return [
        "<details>", f"<summary>{reference}</summary>", "",
        *markdown_table(wording.cost_header, rows), "", total, "", "</details>", "",
    ]  # fmt: skip


class TaskRow(NamedTuple):
    """A row of the table of tasks: a metric on the part of a task that models are compared on."""

    task: str
    split: str
    metric: str
    score: str  # its name in eval_results.txt

    @property
    def name(self):
        """What the sentences call it."""
        return f"{self.task}, {self.metric}"


def task_rows(task):
    """The `TaskRow`s of a task: its metrics on test where it has labels, else on its main split."""
    row = find_task(task)
    split = "test" if "test" in row.splits else row.splits[0]
    # The results of the first split have Google's names.
    prefix = "eval" if split == row.splits[0] else split
    return [TaskRow(task, split, metric, f"{prefix}_{metric}") for metric in row.metrics]


def task_question(results, reference):
    """The runs of a reference run on tasks.

    Returns:
        A `Question` whose variants are the `BEGINNINGS`, and its `TaskRow`s.
    """
    found = {}
    for name in results.runs:
        if (match := TASK_RUN.fullmatch(name)) and match[1] == reference:
            found.setdefault(match[3], {}).setdefault(match[2], []).append(name)
    rows = [row for task in found for row in task_rows(task)]
    cells = [
        Cell(
            variant=beginning,
            task=row.name,
            score=row.score,
            runs=tuple(found[row.task].get(beginning, ())),
        )
        for row in rows
        for beginning in BEGINNINGS
    ]
    return Question(name=reference, title="", title_ko="", cells=tuple(cells)), rows


def task_lines(results, reference, linear, wording):
    """A table of the tasks: the reference model, random weights, linear models.

    Args:
        results, reference, wording: as for the other functions.
        linear: the `Question` of linear models on the same tasks, or None.
    """
    question, task_table = task_question(results, reference)
    if not task_table:
        return []
    found = question_samples(question, results.runs)
    linear_runs = {(cell.variant, cell.task): cell.runs for cell in linear.cells} if linear else {}
    variants = linear.variants if linear else ()
    rows = []
    for row in task_table:
        texts = [score_text(*found[beginning, row.name], wording) for beginning in BEGINNINGS]
        for variant in variants:
            names = linear_runs.get((variant, row.task), ())
            score = f"{row.split}_{row.metric}"  # of linear.py's results
            measured = [results.runs[name] for name in names if name in results.runs]
            texts.append(score_text(score, shown_sample(score, measured), wording))
        rows.append([row.task, f"{row.split} {row.metric}", *texts])
    headings = [wording.linear.format(features=label(variant, wording)) for variant in variants]
    table = markdown_table([*wording.tasks_header, *headings], rows)
    sentences = question_sentences(question, results.runs, wording)
    title = wording.tasks_title.format(name=reference)
    lines = [f"## {title}", "", *table, ""]
    if {cell.variant for cell in question.cells if cell.runs} == set(BEGINNINGS):
        lines += [wording.tasks_note, ""]
    if sentences:
        lines += [*sentences, ""]
    return [*lines, *run_lines(question, results.runs, wording)]
