"""Finds the columns of a user's own files by usual names, or by given names or numbers."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.datasets import Column
from finetuning.tables import column_names, has_column, only_column, say_columns

# The usual names of columns, the English names first.
USUAL_NAMES = {
    "text": (
        "text", "sentence", "document", "review", "comment", "content", "문장", "내용", "본문",
        "리뷰", "텍스트", "댓글", "문서", "글",
    ),
    "label": (
        "label", "class", "category", "sentiment", "라벨", "레이블", "분류", "범주", "카테고리",
        "클래스", "감정", "유형",
    ),
}  # fmt: skip

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


def find_columns(
    path: str, columns: Columns, needs_label: bool = True, encoding: str | None = None
) -> Columns:
    """Finds the text and the label by their usual names where `columns` has none or another.

    Prints what it finds; raises an `InputError` if none or several columns have a usual name.
    Columns by number are returned unchanged.
    """
    if columns.text is not None and columns.text.isdecimal():
        return columns
    names = column_names(path, encoding)
    found: dict[str, str] = {}
    for kind in ("text", "label") if needs_label else ("text",):
        if not has_column(names, getattr(columns, kind)):
            others = [name for name in names if name not in (columns.text, *found.values())]
            found[kind] = only_column(others, USUAL_NAMES[kind], f"--{kind}_column", path)
    if found:
        say_columns(path, found)
    return columns._replace(**found)
