"""Describes a custom data set: a user's own train, dev and test files, .csv, .tsv or .jsonl."""

import os
import re
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.datasets import DATASETS, Dataset, SplitSource
from finetuning.readers import MissingColumn, find_file, label_text, label_texts, read_rows

FILE_TYPES = ("csv", "tsv", "jsonl")
TASK_TYPES = ("single_label", "multi_label", "regression")

# The metrics of each type; the first chooses the best checkpoint.
DEFAULT_METRICS = {
    "single_label": ("accuracy", "macro_f1"),
    "multi_label": ("micro_f1", "macro_f1"),
    "regression": ("pearson", "spearman"),
}

# The metrics that suit each type; f1 is that of the second of two labels.
FITTING_METRICS = {
    "single_label": ("accuracy", "f1", "macro_f1", "micro_f1", "matthews"),
    "multi_label": ("micro_f1", "macro_f1", "accuracy"),
    "regression": ("pearson", "spearman", "paraphrase_f1"),
}

# Python refuses to parse very long numbers.
_WHOLE_NUMBER = r"\d{1,18}"

# A column with more labels than this probably holds numbers or texts.
MAX_LABELS = 10_000


class Columns(NamedTuple):
    """The columns of a custom data set.

    Each is a name in the header line or a key of the JSON objects, or a number from 0, as digits,
    in a .csv or .tsv without a header.
    """

    text: str = "text"
    second: str | None = None
    label: str = "label"
    id: str | None = None


def custom_dataset(
    file_type, data_dir, task_type, columns, labels=None, metrics=None, *, encoding=None
):
    """Makes a `finetuning.datasets.Dataset` of the files in a folder.

    Args:
        file_type: one of `FILE_TYPES`: the extension of the files' names.
        data_dir: holds train, dev and test; some of them may be missing.
        task_type: one of `TASK_TYPES`.
        columns: `Columns`.
        labels: all labels, in the order of the classes; None: those of the training file.
        metrics: names of `FITTING_METRICS`; None for `DEFAULT_METRICS`.
        encoding: of the files, a key of `bert_common.text_encoding.NAMES`; None: it is recognised.

    Returns:
        A `Dataset`, whose splits are those whose files exist.

    Raises:
        InputError: there is no file, a metric does not suit the type, or labels cannot be found.
    """
    columns = custom_columns(columns, file_type)
    files = {split: f"{split}.{file_type}" for split in ("train", "dev", "test")}
    present = {s: f for s, f in files.items() if os.path.isfile(os.path.join(data_dir, f))}
    if not present:
        find_file(files["train"], data_dir, "")
    source = SplitSource((), *columns, own=True, encoding=encoding)
    sources = {split: source._replace(files=(name,)) for split, name in present.items()}
    return describe_custom_dataset(sources, data_dir, task_type, labels, metrics)


def custom_columns(columns, file_type):
    """The columns of a file: names, or numbers as ints.

    Raises:
        InputError: some are names, others numbers.
    """
    columns = [_column(name, file_type) for name in columns]
    if len({isinstance(column, int) for column in columns if column is not None}) > 1:
        raise InputError(
            "columns must all be names, or all be numbers (files without a header). Received: "
            + ", ".join(str(column) for column in columns if column is not None)
        )
    return columns


def describe_custom_dataset(sources, data_dir, task_type, labels=None, metrics=None):
    """Makes the `Dataset` of sources; the other arguments are those of `custom_dataset`."""
    fitting = FITTING_METRICS[task_type]
    unknown = [name for name in metrics or () if name not in fitting]
    if unknown:
        raise InputError(
            f"--metrics of --task_type={task_type} must be of {', '.join(fitting)}. "
            f"Received: {', '.join(unknown)}"
        )
    for source in sources.values():
        refuse_header(os.path.join(data_dir, source.files[0]), source)
    if "test" in sources and not _has_label(data_dir, sources["test"]):
        sources["test"] = sources["test"]._replace(label=None)
    labels = None if labels is None else [label_text(label) for label in labels]
    if task_type == "regression":
        labels = ()
    elif labels is None:
        labels = _find_labels(data_dir, sources.get("train"), task_type == "multi_label")
    elif len(set(labels)) < max(2, len(labels)) or "" in labels:
        raise InputError(
            f"--labels must be at least two different labels. Received: {','.join(labels)}"
        )
    if "f1" in (metrics or ()) and len(labels) != 2:
        raise InputError(
            "--metrics=f1 is for two labels; for more there are macro_f1 and micro_f1. "
            f"Received: {len(labels)} labels"
        )
    metrics = tuple(metrics or DEFAULT_METRICS[task_type])
    multi_label = task_type == "multi_label"
    return Dataset("", sources, tuple(labels), metrics, multi_label=multi_label)


def _column(name, file_type):
    """The name of a column; the number of one as an int."""
    is_number = file_type != "jsonl" and name is not None and re.fullmatch(_WHOLE_NUMBER, name)
    return int(name) if is_number else name


# What a header usually calls a column: no text and no label is such a word.
HEADER_WORDS = {
    "text", "texts", "document", "sentence", "sentence1", "sentence2", "question", "context",
    "review", "comment", "content", "title", "label", "labels", "class", "category", "target",
    "score", "sentiment", "gold_label", "id", "index", "no", "문장", "내용", "본문", "리뷰",
    "텍스트", "제목", "질문", "라벨", "레이블", "분류", "범주", "카테고리", "클래스", "점수",
    "번호", "별점", "평점", "감정", "댓글",
} | {  # and what the published data sets call them
    column.lower()
    for dataset in DATASETS.values()
    for source in dataset.sources.values()
    for column in (source.text, source.second, source.label)
    if isinstance(column, str)
}  # fmt: skip

_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def refuse_header(path, source):
    """Refuses a table of which the columns are numbers, and whose first line is their header.

    Raises:
        InputError: every cell of the columns is a word that headers consist of, or the label of the
            first line alone is no number.
    """
    if not isinstance(source.text, int):
        return
    columns = [c for c in (source.text, source.second, source.label) if c is not None]
    rows = ((where, _cells(field, columns)) for where, field in read_rows(path, source))
    where, cells = next(rows, ("", []))
    named = bool(cells) and all(cell.lower() in HEADER_WORDS for cell in cells)
    if named or (len(cells) == len(columns) and _is_no_number(cells, rows, len(columns))):
        raise InputError(
            f"{where} must be an example, as the columns are given by number: remove the "
            "header, or give its names, such as --text_column="
            f"{cells[0]}. Received: {', '.join(cells)}"
        )


def _cells(field, columns):
    """The cells of a row in some columns; without the label, if it is a test file's without one."""
    cells = []
    for column in columns:
        try:
            cells.append(str(field(column)).strip())
        except MissingColumn:
            break
    return cells


def _is_no_number(cells, rows, width):
    """Whether the labels of all other rows, two at least, are numbers, and the first row's is none.

    Args:
        cells: the text, and at the end the label, of the first row.
        rows: the places and such cells of the other rows.
        width: how many cells a row has that is whole.
    """
    if _NUMBER.fullmatch(cells[-1]):
        return False
    count = 0
    for _, others in rows:
        if len(others) != width or not _NUMBER.fullmatch(others[-1]):
            return False
        count += 1
    return count >= 2


def _has_label(data_dir, source):
    """Whether the first row of a test file has a label, which it need not."""
    path = find_file(source.files[0], data_dir, "")
    try:
        for _, field in read_rows(path, source):
            field(source.label)
            return True
    except MissingColumn:
        return False
    except InputError:  # the header lacks a column: the label or another one
        for _ in read_rows(path, source._replace(label=None)):
            return False
    return False


def _find_labels(data_dir, source, multi_label):
    """All labels of the training file, sorted: as numbers if all of them are, else as texts."""
    if source is None:
        raise InputError(
            "--labels must be given where there is no training file to find them in. Received: none"
        )
    path, labels = find_file(source.files[0], data_dir, ""), set()
    for where, field in read_rows(path, source):
        try:
            value = field(source.label)
        except MissingColumn as error:
            raise InputError(f"{where} must have {error}") from None
        labels.update(label_texts(value, multi_label, where))
        if "" in labels:
            raise InputError(f"{where}: the label must not be empty. Received: {value!r}")
        commas = [label for label in labels if "," in label]
        if commas:
            raise InputError(f"{where}: a label must not hold a comma. Received: {commas[0]!r}")
        if len(labels) > MAX_LABELS:
            raise InputError(
                f"{path} must have at most {MAX_LABELS} different labels (for numbers there is "
                f"--task_type=regression). Received: more, up to {where}"
            )
    if len(labels) < 2:
        raise InputError(
            f"{path} must have at least two different labels. Received: "
            + (", ".join(labels) or "none")
        )
    if all(re.fullmatch(_WHOLE_NUMBER, label) for label in labels):
        return sorted(labels, key=int)
    return sorted(labels)
