"""Puts the pages of results together from a ledger."""

import os
from pathlib import Path
from typing import NamedTuple

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.folders import make_writable
from finetuning.metrics import imported
from run_scripts.reference.curves import curves_path, read_curves
from run_scripts.reference.ledger import read_runs
from run_scripts.reference.pages import reference_model
from run_scripts.reference.pages.english import ENGLISH
from run_scripts.reference.pages.korean import KOREAN
from run_scripts.reference.pages.paired import paired_lines
from run_scripts.reference.pages.plots import draw_curves
from run_scripts.reference.pages.pretraining import (
    PICTURES,
    held_out_lines,
    held_out_measures,
    order_lines,
    phase_lines,
    phases,
    shown_phases,
)
from run_scripts.reference.pages.questions import QUESTIONS_FILE, read_questions
from run_scripts.reference.pages.tables import (
    group_by_seed,
    least_differences,
    machine_letters,
    question_sentences,
    question_table,
    run_lines,
    without_seed,
)

# The page's file -> its language.
PAGES = {"results.md": ENGLISH, "results.ko.md": KOREAN}

# The question whose variants stand beside the reference model on its tasks.
LINEAR = "linear"


class Results(NamedTuple):
    """All that the pages are made of."""

    runs: dict  # name -> `Run`
    questions: list  # of `Question`
    curves: dict  # name of a run -> its curves, a dict tag -> `Curve`
    notes: dict  # a language's file of notes -> its text

    @property
    def references(self):
        """The names of the reference runs; some only measure a model, or fine-tune it."""
        measured = [each.reference for each in [*phases(self), *held_out_measures(self)]]
        tasks = filter(None, map(reference_model.TASK_RUN.fullmatch, self.runs))
        return list(dict.fromkeys([*measured, *(match[1] for match in tasks)]))


def check_plots():
    """Raises an InputError if matplotlib, which draws the curves, is not installed."""
    imported("matplotlib.figure")


def read_everything(ledger):
    """Reads a ledger with the files beside it: the `Results`."""
    runs, folder = read_runs(ledger), Path(ledger).parent
    curves = {name: read_curves(curves_path(ledger, name)) for name in runs}
    files = [folder / wording.notes_file for wording in PAGES.values()]
    return Results(
        runs,
        read_questions(folder / QUESTIONS_FILE),
        {name: each for name, each in curves.items() if each},
        {file.name: read_notes(file) for file in files if file.exists()},
    )


def read_notes(path):
    """The text of a file of notes; an `InputError` if it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8. Received: {error.reason}") from None


def write_pages(ledger, output_dir):
    """Writes results.md, results.ko.md and the pictures that they show.

    Args:
        ledger: the file of runs.
        output_dir: the folder of the pages; pictures go into its folder results.

    Raises:
        InputError: a damaged ledger, no matplotlib, or a folder that cannot be written to.
    """
    results = read_everything(ledger)
    make_writable(os.path.join(output_dir, "results"), "--output_dir must be writable")
    measured = phases(results)
    for picture in PICTURES:
        if shown := shown_phases(measured, picture):
            path = os.path.join(output_dir, picture.file)
            draw_curves(shown, path, picture)
    for name, wording in PAGES.items():
        with atomic_write(os.path.join(output_dir, name)) as file:
            file.write(render(results, wording).encode("utf-8"))


def render(results, wording):
    """The text of a page.

    Args:
        results: `Results`.
        wording: a `Wording`.
    """
    lines = [f"# {wording.title}", "", wording.navigation, "", wording.introduction, ""]
    if not results.runs:
        return "\n".join([*lines, wording.empty, ""])
    lines += [wording.reading, "", *machine_lines(results.runs, wording)]
    if notes := results.notes.get(wording.notes_file):
        lines += [f"## {wording.notes_title}", "", notes.strip(), ""]
    lines += phase_lines(results, wording)
    lines += held_out_lines(results, wording)
    lines += order_lines(results, wording)
    linear = next((q for q in results.questions if q.name == LINEAR), None)
    for reference in results.references:
        lines += reference_model.task_lines(results, reference, linear, wording)
    lines += question_lines(results, wording)
    lines += stage_lines(results, wording)
    lines += command_lines(results, wording)
    return "\n".join(lines)


def machine_lines(runs, wording):
    """The list of machines, whose letters the tables use."""
    lines = [f"## {wording.machines}", ""]
    for machine, letter in machine_letters(runs).items():
        lines.append(f"- {letter}: {machine}")
    return [*lines, ""]


def question_lines(results, wording):
    """A table for each question, with what may be said of it, and the names of its runs."""
    lines, least = [], least_differences(results.questions, results.runs)
    for question in results.questions:
        table = question_table(question, results.runs, wording)
        if not table:
            continue
        title = question.title_ko if wording is PAGES["results.ko.md"] else question.title
        lines += [f"### {title}", "", *table, ""]
        if sentences := question_sentences(question, results.runs, wording, least):
            lines += [*sentences, ""]
        lines += paired_lines(question, results.runs, wording)
        lines += run_lines(question, results.runs, wording)
    return [f"## {wording.questions_title}", "", *lines] if lines else []


def stage_lines(results, wording):
    """What the stages of each reference run took."""
    lines = []
    for reference in results.references:
        lines += reference_model.cost_lines(results, reference, wording)
    return [f"## {wording.stages_title}", "", *lines] if lines else []


def command_lines(results, wording):
    """The commands of the reference runs, one for the runs that differ in their seeds."""
    names = [name for name in results.runs if name.split("/")[0] in results.references]
    if not names:
        return []
    lines = [f"## {wording.commands_title}", "", wording.commands_note, "", "```bash"]
    for group, members in group_by_seed(names).items():
        seeds = wording.list_comma.join(filter(None, (without_seed(n)[1] for n in members)))
        shown = f", {wording.seeds.format(seeds=seeds)}" if seeds else ""
        lines += [f"# {group}{shown}", results.runs[members[0]].command]
    return [*lines, "```", ""]
