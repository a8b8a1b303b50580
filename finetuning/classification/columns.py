"""Finds the columns of a user's own files by usual names, or by given names or numbers."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.datasets import DATASETS, Column, Dataset, SplitSource
from finetuning.labels import is_empty, read_label
from finetuning.readers import MissingColumn, read_rows
from finetuning.tables import column_names, only_column

# Usual names of the columns of texts and labels, the English names first.
TEXT_NAMES = (
    "text", "sentence", "document", "review", "comment", "content", "문장", "내용", "본문", "리뷰",
    "텍스트", "댓글", "문서", "글",
)  # fmt: skip
LABEL_NAMES = (
    "label", "class", "category", "sentiment", "라벨", "레이블", "분류", "범주", "카테고리",
    "클래스", "감정", "유형",
)  # fmt: skip

# Usual names of other columns.
OTHER_NAMES = (
    "texts", "sentence1", "sentence2", "question", "context", "title", "labels", "target", "score",
    "gold_label", "id", "index", "no", "제목", "질문", "점수", "번호", "별점", "평점",
)  # fmt: skip

# Words that occur in headers but are never a text or a label; the published data sets add more.
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

    Each is a name in the header line, a key of the JSON objects, or a number from 0, as digits, in
    a .csv or .tsv without a header; None if the column is not given.
    """

    text: str | None = "text"
    second: str | None = None
    label: str | None = "label"
    id: str | None = None


def custom_columns(columns: Iterable[str | None], is_table: bool) -> list[Column | None]:
    """Converts a table's column numbers to ints; raises an `InputError` if mixed with names."""
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
    """Fills in unknown text and label columns by their names in a file, if unambiguous.

    Prints the columns it finds; raises an `InputError` if none or several have a usual name.

    Args:
        columns: the known columns; None for an unknown one.
        needs_label: whether a label is required.
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
    """Calls `guess_columns` for a file that may name its columns unlike the training file."""
    if columns.text is not None and columns.text.isdecimal():
        return columns
    names = column_names(path, encoding)
    looked_for = ("text", "label") if needs_label else ("text",)
    given = {kind: getattr(columns, kind) for kind in looked_for}
    missing = {kind: None for kind, n in given.items() if n not in names and "." not in (n or "")}
    return guess_columns(path, columns._replace(**missing), needs_label, encoding)


def guess_test_label(dataset: Dataset, source: SplitSource) -> SplitSource:
    """Finds the label of a user's own test file that names its column unlike the training file.

    `source` has no label. The returned source has one if exactly one column has a usual name of
    labels and its first value, empty ones aside, is a label of the data set.
    """
    path = source.files[0]
    names = [] if isinstance(source.text, int) else column_names(path, source.encoding)
    found = [name for name in names if name.lower() in LABEL_NAMES and name != source.text]
    if len(found) != 1:
        return source
    guessed = source._replace(label=found[0])
    for where, field in read_rows(path, guessed):
        try:
            value = field(found[0])
            if is_empty(value):  # of several labels, none is an answer
                continue
            read_label(dataset, value, where)
        except InputError:
            return source
        say_guessed(path, label=found[0])
        return guessed
    return source


def say_guessed(path: str, **guessed: str) -> None:
    """Prints which columns of a file were guessed, and the flags that name others."""
    if guessed:
        said = ", ".join(f"{kind} {name!r}" for kind, name in guessed.items())
        flags = " and ".join(f"--{kind}_column" for kind in guessed)
        name = "name others" if len(guessed) > 1 else "names another"
        print(f"columns of {path}: {said} ({flags} {name})")


_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def refuse_header(path: str, source: SplitSource) -> None:
    """Raises an `InputError` if columns are given by number but a table's first line is a header.

    The first line is a header if every cell of the columns is in `HEADER_WORDS`, or if its label is
    the only one that is not a number.
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
    """Returns a row's cells in `columns` up to a missing one; a test file may lack the label."""
    cells = []
    for column in columns:
        try:
            cells.append(str(field(column)).strip())
        except MissingColumn:
            break
    return cells


def _is_no_number(cells, rows, width):
    """Returns True if all labels except the first row's are numbers, and there are at least two.

    The label is the last of a row's cells; a complete row has `width` cells.
    """
    if _NUMBER.fullmatch(cells[-1]):
        return False
    count = 0
    for _, others in rows:
        if len(others) != width or not _NUMBER.fullmatch(others[-1]):
            return False
        count += 1
    return count >= 2
