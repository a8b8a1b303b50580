"""Writes the metrics of each class and the worst mistakes of an evaluation to files.

Shapes: N examples, C classes.
"""

import itertools
import json
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bert_common.atomic_write import atomic_write

# The maximum number of mistakes in the file.
LISTED_MISTAKES = 200

# The maximum number of classes all of whose confusions are written. A number for every pair of
# 10,000 classes, which run_classifier allows, would take a file of 2 GB and far more memory.
FULL_CLASSES = 1000


class ClassReport(NamedTuple):
    """The metrics of each class."""

    labels: tuple[str, ...]  # the names of the classes, C
    # The number of examples of each true class (row) predicted as each class (column), [C, C]; None
    # if multi-label.
    confusion: np.ndarray | None
    precision: np.ndarray  # [C]
    recall: np.ndarray  # [C]
    f1: np.ndarray  # [C]
    support: np.ndarray  # the number of examples of each class, [C]


class Mistakes(NamedTuple):
    """The wrong predictions of an evaluation, as a table."""

    columns: tuple[str, ...]  # their names
    rows: Sequence[tuple[str, ...]]  # the worst first


def make_class_report(
    labels: Sequence[str], true: np.ndarray, predicted: np.ndarray
) -> ClassReport:
    """Computes the metrics of each class; a metric whose denominator is 0 is 0.

    `true` and `predicted` are class indices [N] or, if multi-label, 0 or 1 for each class [N, C].
    """
    if true.ndim == 2:
        right = np.sum(true * predicted, axis=0)  # [C]
        return report_of_counts(labels, None, right, predicted.sum(axis=0), true.sum(axis=0))
    confusion = np.zeros((len(labels),) * 2, np.int64)  # [C, C]
    np.add.at(confusion, (true, predicted), 1)
    return report_of_matrix(labels, confusion)


def report_of_matrix(labels: Sequence[str], confusion: np.ndarray) -> ClassReport:
    """Computes the `ClassReport` of a confusion matrix."""
    right = confusion.diagonal()  # [C]
    predicted, support = confusion.sum(axis=0), confusion.sum(axis=1)  # [C]
    return report_of_counts(labels, confusion, right, predicted, support)


def report_of_counts(
    labels: Sequence[str],
    confusion: np.ndarray | None,
    right: np.ndarray,
    predicted: np.ndarray,
    support: np.ndarray,
) -> ClassReport:
    """Computes a `ClassReport` from each class's correct, predicted and true examples, [C] each."""
    return ClassReport(
        tuple(labels),
        confusion,
        right / np.maximum(predicted, 1),  # [C]
        right / np.maximum(support, 1),  # [C]
        2 * right / np.maximum(support + predicted, 1),  # [C]
        support,
    )


def write_class_report(directory: str, split: str, report: ClassReport) -> list[str]:
    """Writes eval_classes_SPLIT.tsv and .json; returns their paths.

    Each line of the .tsv holds a class, its precision, recall, F1 and number of examples, and then,
    unless multi-label, how many of these were predicted as each class. With more than
    `FULL_CLASSES`, only the .json has these numbers, without the zeros.
    """
    paths = [os.path.join(directory, f"eval_classes_{split}.{kind}") for kind in ("tsv", "json")]
    names = ("precision", "recall", "f1", "support")
    rows, objects = [], []
    is_full = report.confusion is not None and len(report.labels) <= FULL_CLASSES
    for number, label in enumerate(report.labels):
        figures = {name: getattr(report, name)[number].item() for name in names}
        cells = [f"{figures[name]:.4f}" for name in names[:3]] + [str(figures["support"])]
        predicted = {}
        if report.confusion is not None:
            pairs = zip(report.labels, report.confusion[number].tolist(), strict=True)
            counts = {name: count for name, count in pairs if count or is_full}
            predicted = {"predicted": counts}
            cells += map(str, counts.values() if is_full else ())
        rows.append([label, *cells])
        objects.append({"class": label, **figures, **predicted})
    columns = [f"predicted {name}" for name in report.labels] if is_full else []
    write_rows(paths[0], [["class", *names, *columns], *rows])
    with atomic_write(paths[1]) as file:
        file.write(json.dumps(objects, ensure_ascii=False, indent=1).encode("utf-8") + b"\n")
    return paths


def write_mistakes(directory: str, split: str, mistakes: Mistakes) -> str:
    """Writes mistakes_SPLIT.tsv, at most `LISTED_MISTAKES` of them; returns its path."""
    path = os.path.join(directory, f"mistakes_{split}.tsv")
    write_rows(path, [mistakes.columns, *mistakes.rows[:LISTED_MISTAKES]])
    return path


def write_columns(path: str, columns: Sequence[tuple[str, Iterable[object]]]) -> None:
    """Writes a .tsv file from its columns, (heading, cells) each."""
    headings, cells = zip(*columns, strict=True)
    write_rows(path, itertools.chain([headings], zip(*cells, strict=True)))


def write_rows(path: str, rows: Iterable[Iterable[object]]) -> None:
    """Writes the rows of a .tsv file; white space inside a cell becomes single spaces."""
    with atomic_write(path) as file:
        for row in rows:
            line = "\t".join(" ".join(str(cell).split()) for cell in row)
            file.write(f"{line}\n".encode())
