"""Reads .csv files as spreadsheets write them: quotes, line breaks in quotes, three separators."""

import csv
import io

from bert_common.errors import InputError

# What separates columns, the most usual first; Excel writes ";" where a comma is the decimal point.
SEPARATORS = (",", ";", "\t")


def read_csv(text, path):
    """Yields the place of every row of a .csv file, and its cells; blank lines are left out.

    Args:
        text: the file's contents.
        path: the file, for messages.

    Raises:
        InputError: a quote is not closed, or text follows a closing one; names the line.
    """
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=find_separator(text), strict=True)
    start = 1
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
        if any(cell.strip() for cell in row):
            yield f"{path} line {start}", row
        start = rows.line_num + 1


def find_separator(text):
    """The separator that the first line has most often outside of quotes."""
    outside = "".join(text.lstrip("\r\n").split("\n", 1)[0].split('"')[::2])
    return max(SEPARATORS, key=outside.count)
