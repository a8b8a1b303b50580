"""Reads tables written by spreadsheets, with quotes, line breaks in quotes and three separators."""

import csv
import io
import itertools
import re
from collections.abc import Iterator

from bert_common.errors import InputError

# The separators of columns, the most usual first, and their names. Excel writes ";" in countries
# whose decimal point is a comma.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}

# A row's place (its file and line) and its cells.
Row = tuple[str, list[str]]

# The number of rows from which the separator is determined.
_SHOWING_ROWS = 20

# A first line that only names the separator; Excel reads it, and some programs write it for Excel.
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")


def read_csv(text: str, path: str, separator: str | None = None) -> tuple[str, Iterator[Row]]:
    """Reads a .csv file; returns its separator and an iterator over its non-blank rows.

    If `separator` is None, a first line may name it, or `find_separator` finds it. The
    iterator raises an `InputError` that names the line if a quote is not closed or if text follows
    a closing quote.
    """
    start, named = 1, None if separator else _SEPARATOR_LINE.match(text)
    if named:
        start, separator, text = 2, named[1], text[named.end() :]
    # Python's default limit is 131,072 characters per cell; a text may be longer.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    separator = separator or find_separator(text)
    return separator, _rows(text, path, separator, start)


def _rows(text, path, separator, start):
    """Yields the place and the cells of every non-blank row; line numbers begin at `start`.

    A row that consists of "" is blank, except in a table with one column, where it is empty text.
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
    """Returns the separator that splits the first rows into equally many columns.

    If several do, or none does, returns the most frequent separator in the first line outside
    quotes. Among several, a separator before a space counts less, as it is probably punctuation.
    """
    outside = "".join(text.lstrip("\r\n").split("\n", 1)[0].split('"')[::2])
    fitting = [separator for separator in SEPARATORS if _makes_columns(text, separator)]
    if not fitting:
        return max(SEPARATORS, key=outside.count)
    return max(fitting, key=lambda s: (len(re.findall(f"{s}(?! )", outside)), outside.count(s)))


def _makes_columns(text, separator):
    """Returns True if the first rows have the same number of columns, at least two."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        first = list(itertools.islice(rows, _SHOWING_ROWS))
    except csv.Error:
        return False
    widths = {len(row) for row in first if not _is_blank(row)}
    return len(widths) == 1 and widths != {1}


def read_tsv(text: str, path: str) -> list[Row]:
    """Reads the places and the cells of the non-blank rows of a user's own .tsv file.

    Quotes belong to the text unless the file is quoted by the rules of Excel and pandas, which put
    quotes around all cells or only around cells that need them.
    """
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.removesuffix("\r").split("\t")
        if not _is_blank(cells):
            rows.append((f"{path} line {number}", cells))
    return _quoted_rows(text, path, rows) or rows


def _quoted_rows(text, path, plain):
    """Returns the rows of a .tsv file with its quotes resolved, or None if it is not quoted."""
    if not re.search(r'(?:^|\t)"', text, re.MULTILINE):
        return None
    try:
        rows = list(read_csv(text, path, "\t")[1])
    except InputError:
        return None
    if len({len(cells) for _, cells in rows}) != 1:
        return None
    if len({len(cells) for _, cells in plain}) != 1:
        return rows  # rows are equally wide only this way: quotes enclose tabs or line breaks
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
