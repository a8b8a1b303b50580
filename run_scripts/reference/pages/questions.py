"""Says which runs answer a question, for a table of their scores.

A run can answer several questions, so its name alone does not say where it belongs. The file
questions.json beside the ledger does; whoever makes the runs writes it with `write_questions`.
"""

import dataclasses
import os
from pathlib import Path

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.json_text import read_json
from run_scripts.reference.ledger import check_keys

QUESTIONS_FILE = "questions.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """A place in a table: the runs of a variant on a task, which differ in their seeds alone."""

    variant: str  # the row, for example "wordpiece-16000"
    task: str  # the column, for example "nsmc"
    score: str  # which of the runs' scores, for example "eval_accuracy"
    runs: tuple[str, ...]  # their names in the ledger, of runs that may not have been made yet


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """What is compared: a table with a row for each variant and a column for each task."""

    name: str  # short, for example "vocabulary"
    title: str  # for docs/results.md
    title_ko: str  # for docs/results.ko.md
    cells: tuple[Cell, ...]
    # Variants that differ in the seed of pre-training alone. A question with such variants shows
    # how much that seed changes, and ranks nothing.
    replicates: tuple[str, ...] = ()
    # Ways of doing something -> their variants, one for each setting that all of them were tried
    # in; the others are compared with the first.
    paired: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def variants(self):
        """The rows, in the order of the cells."""
        return tuple(dict.fromkeys(cell.variant for cell in self.cells))

    @property
    def tasks(self):
        """The columns, in the order of the cells."""
        return tuple(dict.fromkeys(cell.task for cell in self.cells))


def write_questions(path, questions):
    """Writes a list of `Question` as a JSON file."""
    write_json(str(path), [dataclasses.asdict(question) for question in questions])


def read_questions(path):
    """Reads what `write_questions` wrote: a list of `Question`; empty without a file.

    Raises:
        InputError: the file is not of this form.
    """
    if not os.path.exists(path):
        return []
    entries = read_json(Path(path).read_text(encoding="utf-8"), path)
    if not isinstance(entries, list):
        raise InputError(f"{path} must hold a list of questions. Received: {entries!r:.100}")
    return [_question(values, f"{path}, question {i},") for i, values in enumerate(entries, 1)]


def _question(values, where):
    check_keys(values, Question, where)
    for cell in values["cells"]:
        check_keys(cell, Cell, f"{where} cell")
    cells = (Cell(**{**cell, "runs": tuple(cell["runs"])}) for cell in values["cells"])
    paired = {way: tuple(variants) for way, variants in values["paired"].items()}
    replicates = tuple(values["replicates"])
    return Question(**{**values, "cells": tuple(cells), "replicates": replicates, "paired": paired})
