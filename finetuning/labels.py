"""Reads the labels of classification examples."""

import functools
import math
import re
from typing import Any

from bert_common.errors import InputError
from finetuning.datasets import Column, Dataset
from finetuning.settings import split_names
from finetuning.tables import composed, first_of, shortened

# A class's index; for regression the score; for multi-label data 0 or 1 for each class.
Label = int | float | tuple[int, ...]

# A list as pandas writes it into a cell of a table, or as JSON.
_LIST = re.compile(r"\[(\s*|[^\]]*,.*|\s*(['\"]).*\2\s*)\]", re.DOTALL)


def read_label(dataset: Dataset, value: Any, where: str) -> Label:
    """Returns the label of an `Example` for its value in the file."""
    if not dataset.labels:
        try:
            score = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{where}: the label must be a number. Received: {value!r}")
        return score
    values = label_texts(value, dataset.multi_label, where)
    values = [dataset.aliases.get(label, label) for label in values]
    unknown = [label for label in values if label not in dataset.labels]
    if unknown:
        raise InputError(
            f"{where}: the label must be one of {first_of(dataset.labels)}. "
            f"Received: {unknown[0]!r}"
        )
    if dataset.multi_label:
        return tuple(int(label in values) for label in dataset.labels)
    return dataset.labels.index(values[0])


def read_own_label(dataset: Dataset, value: Any, where: str, column: Column | None) -> Label:
    """Calls `read_label` for a user's own file; the messages say what to do."""
    if is_empty(value) and not dataset.multi_label:
        raise InputError(
            f"{where}: the label must not be empty: give it, leave the row out, or leave all "
            f"labels of a test file empty. Received: {value!r}"
        )
    place = f"{where}, column {column!r} (--label_column names another)"
    return read_label(dataset, value, place)


def is_empty(label: object) -> bool:
    """Returns True if a label in a file is missing: a blank cell, or null."""
    return label is None or (isinstance(label, str) and not label.strip())


def label_texts(value: Any, multi_label: bool, where: str) -> list[str]:
    """Returns an example's label or, if multi-label, the items of a list or comma-joined text."""
    parts = value if multi_label and isinstance(value, list) else [value]
    if multi_label and value is None:  # like an empty cell
        return []
    wrong = [
        part
        for part in parts
        if not isinstance(part, str | int | float)
        or (isinstance(part, float) and not math.isfinite(part))
    ]
    if wrong:
        raise InputError(f"{where}: a label must be text or a number. Received: {wrong[0]!r}")
    if multi_label and isinstance(value, str):
        if _LIST.fullmatch(value.strip()):
            raise InputError(
                f"{where}: several labels must be separated by commas alone, without brackets and "
                f"quotes. Received: {shortened(value)}"
            )
        parts = value.split(",")
    texts = [label_text(part) for part in parts]
    return [text for text in texts if text] if multi_label else texts


@functools.lru_cache(maxsize=1000, typed=True)
def label_text(value: object) -> str:
    """Returns a label as `composed` text; 1.0 becomes 1: tables that lack a number write floats."""
    return re.sub(r"^(-?\d+)\.0+$", r"\1", composed(str(value).strip()))


def spell_labels(text: str) -> str:
    """Returns comma-separated labels as a model's folder records them, without spaces between."""
    return ",".join(label_text(label) for label in split_names(text))
