"""Reads tables as spreadsheets write them: quotes, line breaks in quotes, three separators."""

import csv
import io
import itertools
import re
from collections.abc import Iterator

from bert_common.errors import InputError

# What separates columns, the most usual first, and its name; Excel writes ";" where a comma is the
# decimal point.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}

# The place of a row, and its cells.
Row = tuple[str, list[str]]

# How many rows show what separates columns.
_SHOWING_ROWS = 20

# A first line that only names the separator; Excel reads it, and some programs write it for Excel.
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")


def read_csv(text: str, path: str, separator: str | None = None) -> tuple[str, Iterator[Row]]:
    """Reads a .csv file: the separator of its columns, and its non-blank rows' places and cells.

    Where none is given, the separator is as the first line says, or from `find_separator`. The
    iterator refuses a quote that is not closed, and text that follows a closing one; names the
    line.
    """
    start, named = 1, None if separator else _SEPARATOR_LINE.match(text)
    if named:
        start, separator, text = 2, named[1], text[named.end() :]
    # Python's own limit is 131,072 characters a cell; a text may be longer.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    separator = separator or find_separator(text)
    return separator, _rows(text, path, separator, start)


def _rows(text, path, separator, start):
    """Yields the place of every row but blank ones, and its cells; the first line is `start`.

    A "" in quotes is blank, but the empty text of a table with one column.
    """
    lines, skipped, width = io.StringIO(text, newline=""), start - 1, None
    rows = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise InputError(
                f"{path} line {start}: quotes must be closed, and be doubled inside quotes. "
                f"Received: {error}"
            ) from None
        if row is None:
            return
        if not _is_blank(row) or (row == [""] and width == 1):
            width = width or len(row)
            yield f"{path} line {start}", row
        start = skipped + rows.line_num + 1


def find_separator(text: str) -> str:
    """The separator that makes the first rows equally wide.

    Of several such, or where there is none, it is the one that the first line has most often
    outside of quotes; before a space it is rather punctuation.
    """
    outside = "".join(text.lstrip("\r\n").split("\n", 1)[0].split('"')[::2])
    fitting = [separator for separator in SEPARATORS if _makes_columns(text, separator)]
    if not fitting:
        return max(SEPARATORS, key=outside.count)
    return max(fitting, key=lambda s: (len(re.findall(f"{s}(?! )", outside)), outside.count(s)))


def _makes_columns(text, separator):
    """Whether the first rows have the same number of columns, two at least."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        first = list(itertools.islice(rows, _SHOWING_ROWS))
    except csv.Error:
        return False
    widths = {len(row) for row in first if not _is_blank(row)}
    return len(widths) == 1 and widths != {1}


def read_tsv(text: str, path: str) -> list[Row]:
    """The places of a user's own .tsv file's rows, and their cells; blank rows are left out.

    Quotes belong to the text, unless the file is quoted as Excel and pandas do it, which put quotes
    around cells that need them, or around all.
    """
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.removesuffix("\r").split("\t")
        if not _is_blank(cells):
            rows.append((f"{path} line {number}", cells))
    return _quoted_rows(text, path, rows) or rows


def _quoted_rows(text, path, plain):
    """The rows of a .tsv file with its quotes resolved; None if it is not quoted."""
    if not re.search(r'(?:^|\t)"', text, re.MULTILINE):
        return None
    try:
        rows = list(read_csv(text, path, "\t")[1])
    except InputError:
        return None
    if len({len(cells) for _, cells in rows}) != 1:
        return None
    if len({len(cells) for _, cells in plain}) != 1:
        return rows  # only so its rows are of equal width: tabs or line breaks are inside quotes
    if len(rows) != len(plain):
        return None  # quotes that happen to stand at the ends of two cells
    pairs = [
        pair
        for (_, before), (_, after) in zip(plain, rows, strict=True)
        for pair in zip(before, after, strict=True)
    ]
    all_quoted = all(before != after for before, after in pairs)
    return rows if all_quoted or all('"' in a for b, a in pairs if b != a) else None


def _is_blank(cells):
    return not any(cell.strip() for cell in cells)
