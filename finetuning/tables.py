"""Reads the rows of tables and of JSON lines, in the encodings and formats that people have."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bert_common.arrow import import_pyarrow, report_damage
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.text_encoding import NAMES, SAMPLE_BYTES, decode_text, detect_encoding
from finetuning.csv_tables import Row, read_csv, read_tsv

# Of a user's own files of examples.
TABLE_ENDINGS = (".csv", ".tsv")
ENDINGS = (*TABLE_ENDINGS, ".jsonl", ".json", ".parquet")


# The files whose encoding has been said: a path is made absolute on its way.
_noted: set[tuple[str, str]] = set()


def check_ending(path: str) -> None:
    """Refuses a user's own file whose ending does not say how to read it."""
    if not path.lower().endswith(ENDINGS):
        is_workbook = path.lower().endswith((".xlsx", ".xls"))
        other = " (save a workbook as CSV UTF-8)" if is_workbook else ""
        raise InputError(
            f"a file of examples must end in {', '.join(ENDINGS)}{other}. Received: {path}"
        )


def read_cells(
    path: str, own: bool = True, encoding: str | None = None
) -> tuple[str, Iterator[Row]]:
    """Reads a .csv or tab-separated file: its columns' separator, and its rows' places and cells.

    Args:
        own: whether it is a user's own, which may have quotes in a .tsv too.
        encoding: a key of `bert_common.text_encoding.NAMES`; None: it is recognized.
    """
    if path.lower().endswith(".csv"):
        return read_csv(read_text(path, encoding), path)
    if own:
        return "\t", iter(read_tsv(read_text(path, encoding), path))
    return "\t", ((where, line.split("\t")) for where, line in read_lines(path))


def read_header(rows: Iterator[Row], path: str) -> Row:
    """The place and the cells of the first of the rows that `read_cells` returned."""
    where, header = next(rows, (path, []))
    if not any(name.strip() for name in header):
        raise InputError(f"{path} must hold a header. Received: none")
    return where, header


def read_text(path: str, encoding: str | None = None) -> str:
    """A whole file as text; where its encoding is recognized and not UTF-8, it is said once."""
    content = read_bytes(path)
    if encoding is None:
        encoding = detect_encoding(content[:SAMPLE_BYTES])
        said = os.path.abspath(path), encoding
        if encoding not in ("utf-8", "utf-8-sig") and said not in _noted:
            _noted.add(said)
            print(f"note: {path} is read as {NAMES[encoding]}", file=sys.stderr)
    return decode_text(content, path, encoding)


def read_parquet(path: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a .parquet file, for which pyarrow must be installed."""
    pyarrow = import_pyarrow(path, "Parquet")
    read_bytes(path)  # a missing or empty file is said as of others
    with report_damage(path, "Parquet"):
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(1024):
            yield from batch.to_pylist()


def read_objects(path: str, encoding: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the place of every object of a .json, .jsonl or .parquet file, and the object."""
    if path.lower().endswith(".parquet"):
        entries = ((f"{path} row {i}", entry) for i, entry in enumerate(read_parquet(path), 1))
    elif path.lower().endswith(".jsonl"):
        lines = (row for row in read_lines(path, encoding) if row[1].strip())
        entries = ((where, read_json(line, where)) for where, line in lines)
    else:
        found = read_json(read_text(path, encoding), path)
        if not isinstance(found, list):
            raise InputError(f"{path} must hold a list of objects. Received: {shortened(found)}")
        entries = ((f"{path} entry {i}", entry) for i, entry in enumerate(found, 1))
    for where, entry in entries:
        check_object(entry, where)
        yield where, entry


def check_object(entry: object, where: str) -> None:
    """Raises an `InputError` that names the place, unless a JSON value is an object."""
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be an object. Received: {shortened(entry)}")


_KINDS = {str: "a string", int: "a whole number", list: "a list"}


def json_field(entry: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """A value of a JSON object, which must exist and be of a type, or of one of several."""
    check_object(entry, where)
    if name not in entry:
        raise InputError(f"{where} must have {name!r}. Received: {', '.join(entry)}")
    if not isinstance(entry[name], kind) or isinstance(entry[name], bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise InputError(
            f"{where}: {name!r} must be {' or '.join(_KINDS[k] for k in kinds)}. "
            f"Received: {shortened(entry[name])}"
        )
    return entry[name]


def shortened(value: object) -> str:
    """A value for a message."""
    return repr(value)[:60]


# How many allowed values a message lists: a column of texts, taken for labels, has thousands.
SHOWN_VALUES = 20


def first_of(values: Iterable[str]) -> str:
    """Lists allowed values for a message, the first ones where there are many."""
    values = list(values)
    more = len(values) - SHOWN_VALUES
    return ", ".join(values[:SHOWN_VALUES]) + (f" and {more:,} more" if more > 0 else "")


def read_table(
    path: str, has_header: bool = True, encoding: str | None = None
) -> tuple[list[str], list[list[Any]]]:
    """Reads all rows of a file of examples: the columns' names, and lists of cells.

    A table without a header has its columns' numbers as names.
    """
    if path.lower().endswith(TABLE_ENDINGS):
        rows = [cells for _, cells in read_cells(path, encoding=encoding)[1]]
        if has_header:
            return rows[0], rows[1:]
        return [str(number) for number in range(max(map(len, rows), default=0))], rows
    entries = [entry for _, entry in read_objects(path, encoding)]
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    return names, [["" if entry.get(n) is None else entry[n] for n in names] for entry in entries]


def column_names(path: str, encoding: str | None = None) -> list[str]:
    """The names of the columns of a file of examples: its header, or the first object's keys."""
    check_ending(path)
    if path.lower().endswith(TABLE_ENDINGS):
        _, header = read_header(read_cells(path, encoding=encoding)[1], path)
        return [name.strip() for name in header]
    _, entry = next(read_objects(path, encoding), ("", {}))
    if not entry:
        raise InputError(f"{path} must hold an example. Received: none")
    return list(entry)


def only_column(names: Sequence[str], known: Sequence[str], flag: str, path: str) -> str:
    """The only one of a file's columns that has a known name; refuses none or several."""
    found = [name for name in names if name.strip().lower() in known]
    if len(found) != 1:
        raise InputError(
            f"{flag} must name a column of {path} where not exactly one is called {known[0]} or "
            f"the like. Received: {', '.join(names)}"
        )
    return found[0]


def read_lines(path: str, encoding: str | None = None) -> Iterator[tuple[str, str]]:
    """Yields the place of every line and its text; lines end in "\\n" or "\\r\\n".

    Blank lines at the end are left out. Text in UTF-16 or cp949 is recognized.
    """
    for number, line in enumerate(read_text(path, encoding).rstrip("\r\n").split("\n"), 1):
        yield f"{path} line {number}", line.removesuffix("\r")
