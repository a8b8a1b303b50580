"""The columns of a user's own files: found by their names, or given by name or number."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.datasets import DATASETS, Column, Dataset, SplitSource
from finetuning.readers import MissingColumn, is_empty, read_label, read_rows
from finetuning.tables import column_names, only_column

# What people call the columns of texts and of labels, the usual English names first.
TEXT_NAMES = (
    "text", "sentence", "document", "review", "comment", "content", "문장", "내용", "본문", "리뷰",
    "텍스트", "댓글", "문서", "글",
)  # fmt: skip
LABEL_NAMES = (
    "label", "class", "category", "sentiment", "라벨", "레이블", "분류", "범주", "카테고리",
    "클래스", "감정", "유형",
)  # fmt: skip

# What else a header calls columns.
OTHER_NAMES = (
    "texts", "sentence1", "sentence2", "question", "context", "title", "labels", "target", "score",
    "gold_label", "id", "index", "no", "제목", "질문", "점수", "번호", "별점", "평점",
)  # fmt: skip

# No text and no label is such a word; the published data sets have more of them.
HEADER_WORDS = {
    *(*TEXT_NAMES, *LABEL_NAMES, *OTHER_NAMES),
    *(
        column.lower()
        for dataset in DATASETS.values()
        for source in dataset.sources.values()
        for column in (source.text, source.second, source.label)
        if isinstance(column, str)
    ),
}

# Python refuses to parse very long numbers.
_WHOLE_NUMBER = r"\d{1,18}"


class Columns(NamedTuple):
    """The columns of a custom data set.

    Each is a name in the header line or a key of the JSON objects, or a number from 0, as digits,
    in a .csv or .tsv without a header; or None where nothing names it.
    """

    text: str | None = "text"
    second: str | None = None
    label: str | None = "label"
    id: str | None = None


def custom_columns(columns: Iterable[str | None], is_table: bool) -> list[Column | None]:
    """The columns of a file: names, or, of a table, perhaps numbers as ints; but not both."""
    columns = [
        int(name) if is_table and name and re.fullmatch(_WHOLE_NUMBER, name) else name
        for name in columns
    ]
    if len({isinstance(column, int) for column in columns if column is not None}) > 1:
        raise InputError(
            "columns must all be names, or all be numbers (files without a header). Received: "
            + ", ".join(str(column) for column in columns if column is not None)
        )
    return columns


def guess_columns(
    path: str, columns: Columns, needs_label: bool = True, encoding: str | None = None
) -> Columns:
    """Finds the columns of text and label by their names in a file, where there is no doubt.

    A column that was found and not given is said; none or several of such a name are refused.

    Args:
        columns: None for one that is not known.
        needs_label: whether there must be a label.
    """
    if columns.text is not None and columns.text.isdecimal():
        return columns  # numbers, of a table without a header
    names, guessed = column_names(path, encoding), {}
    if columns.text is None:
        guessed["text"] = only_column(names, TEXT_NAMES, "--text_column", path)
    if columns.label is None and needs_label:
        others = [name for name in names if name != guessed.get("text", columns.text)]
        guessed["label"] = only_column(others, LABEL_NAMES, "--label_column", path)
    say_guessed(path, **guessed)
    return columns._replace(**guessed)


def fit_columns(
    path: str, columns: Columns, needs_label: bool = True, encoding: str | None = None
) -> Columns:
    """`guess_columns` for a file that need not call its columns as the training file does."""
    if columns.text is not None and columns.text.isdecimal():
        return columns
    names = column_names(path, encoding)
    looked_for = ("text", "label") if needs_label else ("text",)
    given = {kind: getattr(columns, kind) for kind in looked_for}
    missing = {kind: None for kind, n in given.items() if n not in names and "." not in (n or "")}
    return guess_columns(path, columns._replace(**missing), needs_label, encoding)


def guess_test_label(dataset: Dataset, source: SplitSource) -> SplitSource:
    """The source of a user's own test file whose label is called otherwise than in training.

    In `source` no label was found. It gets one if a column is called so, and begins with a label of
    the data set.
    """
    path = source.files[0]
    names = [] if isinstance(source.text, int) else column_names(path, source.encoding)
    found = [name for name in names if name.lower() in LABEL_NAMES and name != source.text]
    if len(found) != 1:
        return source
    label = found[0]
    guessed = source._replace(label=label)
    for where, field in read_rows(path, guessed):
        try:
            value = field(label)
            read_label(dataset, value, where)
        except InputError:
            return source
        if is_empty(value):
            return source
        say_guessed(path, label=label)
        return guessed
    return source


def say_guessed(path: str, **guessed: str) -> None:
    """Says which columns of a file were guessed, and how others are named."""
    if guessed:
        said = ", ".join(f"{kind} {name!r}" for kind, name in guessed.items())
        flags = " and ".join(f"--{kind}_column" for kind in guessed)
        name = "name others" if len(guessed) > 1 else "names another"
        print(f"columns of {path}: {said} ({flags} {name})")


_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def refuse_header(path: str, source: SplitSource) -> None:
    """Refuses a table of which the columns are numbers, and whose first line is their header.

    That is where every cell of the columns is a word that headers consist of, or where the first
    label alone is not a number.
    """
    if not isinstance(source.text, int):
        return
    columns = [c for c in (source.text, source.second, source.label) if c is not None]
    rows = ((where, _cells(field, columns)) for where, field in read_rows(path, source))
    where, cells = next(rows, ("", []))
    named = bool(cells) and all(cell.lower() in HEADER_WORDS for cell in cells)
    has_label = source.label is not None and len(cells) == len(columns)
    if named or (has_label and _is_no_number(cells, rows, len(columns))):
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
    """Whether all labels but the first row's, the last of its cells, are numbers, two at least.

    `width` is how many cells a row has that is whole.
    """
    if _NUMBER.fullmatch(cells[-1]):
        return False
    count = 0
    for _, others in rows:
        if len(others) != width or not _NUMBER.fullmatch(others[-1]):
            return False
        count += 1
    return count >= 2
