"""Makes a data set of a user's own files: their columns guessed, a part of one file held out."""

import os

from bert_common.errors import InputError
from finetuning.classification.custom_data import (
    Columns,
    custom_columns,
    describe_custom_dataset,
)
from finetuning.datasets import SplitSource
from finetuning.tables import column_names

# What people call the columns of texts and of labels, the usual English names first.
TEXT_NAMES = (
    "text", "sentence", "document", "review", "comment", "content", "문장", "내용", "본문", "리뷰",
    "텍스트", "댓글", "문서", "글",
)  # fmt: skip
LABEL_NAMES = (
    "label", "class", "category", "sentiment", "라벨", "레이블", "분류", "범주", "카테고리",
    "클래스", "감정", "유형",
)  # fmt: skip

ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")


def own_dataset(files, task_type, columns, labels=None, metrics=None, encoding=None):
    """Makes a `finetuning.datasets.Dataset` of files.

    Args:
        files: split -> path. A single file "data" is train and dev: a tenth of it is held out.
        task_type, columns, labels, metrics: as for `custom_dataset`. A file of dev or
            test that lacks these columns may have others whose names leave no doubt.
        encoding: of the files, a key of `bert_common.text_encoding.NAMES`; None: it is recognised.

    Raises:
        InputError: as `custom_dataset`, or the ending of a file is unknown.
    """
    sources = {}
    for split, path in files.items():
        fitting = columns
        if split in ("dev", "test"):
            fitting = fit_columns(path, columns, split == "dev", encoding)
        found = own_source(path, fitting, encoding)
        if split == "data":
            sources |= {part: found._replace(part=part) for part in ("train", "dev")}
        else:
            sources[split] = found
    return describe_custom_dataset(sources, "", task_type, labels, metrics)


def own_source(path, columns, encoding=None):
    """The `SplitSource` of one file.

    Raises:
        InputError: the ending of its name is unknown.
    """
    if not path.lower().endswith(ENDINGS):
        other = (
            " (save a workbook as CSV UTF-8)" if path.lower().endswith((".xlsx", ".xls")) else ""
        )
        raise InputError(
            f"a file of examples must end in {', '.join(ENDINGS)}{other}. Received: {path}"
        )
    kind = "csv" if path.lower().endswith((".csv", ".tsv")) else "jsonl"
    columns = custom_columns(columns, kind)
    return SplitSource((os.path.abspath(path),), *columns, own=True, encoding=encoding)


def fit_columns(path, columns, needs_label=True, encoding=None):
    """`Columns` for a file whose text and label may be called otherwise than in the training file.

    Raises:
        InputError: as `guess_columns`.
    """
    own_source(path, columns)  # its ending
    if columns.text is not None and columns.text.isdecimal():
        return columns
    names = column_names(path, encoding)

    def known(name):
        return name if name in names or "." in (name or "") else None

    label = known(columns.label) if needs_label else columns.label
    if label is not None and known(label) is None:  # a test file need not have one
        labels = [name for name in names if name.lower() in LABEL_NAMES]
        label = labels[0] if len(labels) == 1 else label
    kept = columns._replace(text=known(columns.text), label=label)
    found = guess_columns(path, kept, needs_label, encoding)
    if found.text != columns.text:
        print(f"columns of {path}: text {found.text!r} (--text_column names another)")
    return found


def guess_columns(path, columns, needs_label=True, encoding=None):
    """Fills in the columns of text and label by their names in a file, where there is no doubt.

    Args:
        path: the file.
        columns: `Columns`, None where no flag was given.
        needs_label: whether there must be a label.

    Returns:
        `Columns`.

    Raises:
        InputError: no column or more than one has such a name.
    """
    own_source(path, Columns())  # its ending
    if columns.text is not None and columns.text.isdecimal():
        return columns  # numbers, of a table without a header
    names = column_names(path, encoding)
    text = columns.text or _only(names, TEXT_NAMES, "--text_column", path)
    label = columns.label
    if label is None and needs_label:
        label = _only([n for n in names if n != text], LABEL_NAMES, "--label_column", path)
    return columns._replace(text=text, label=label)


def _only(names, known, flag, path):
    found = [name for name in names if name.strip().lower() in known]
    if len(found) != 1:
        raise InputError(
            f"{flag} must name a column of {path} where not exactly one is called {known[0]} or "
            f"the like. Received: {', '.join(names)}"
        )
    return found[0]
