"""Reads the rows of tables and JSON files, in the encodings and formats that people use."""

import itertools
import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert_common.arrow import import_pyarrow, report_damage
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.text_encoding import NAMES, SAMPLE_BYTES, decode_text, detect_encoding
from finetuning.csv_tables import Row, read_csv, read_tsv

# The endings of a user's own files of examples.
TABLE_ENDINGS = (".csv", ".tsv")
ENDINGS = (*TABLE_ENDINGS, ".jsonl", ".json", ".parquet")

# The endings of the files train, dev and test in a user's own folder, as values of --task_name.
FILE_TYPES = ("csv", "tsv", "jsonl")
OWN_FILES = "files"  # the value of --task_name if flags name the files

# The files whose encoding has been printed, by absolute path, as callers make some paths absolute.
_noted: set[tuple[str, str]] = set()


def check_ending(path: str) -> None:
    """Raises an `InputError` if a user's own file does not have one of `ENDINGS`."""
    if not path.lower().endswith(ENDINGS):
        end = " (save a workbook as CSV UTF-8)" if path.lower().endswith((".xlsx", ".xls")) else ""
        raise InputError(
            f"a file of examples must end in {', '.join(ENDINGS)}{end}. Received: {path}"
        )


def read_cells(
    path: str, own: bool = True, encoding: str | None = None
) -> tuple[str, Iterator[Row]]:
    """Reads a .csv or tab-separated file; returns its separator, and its rows' places and cells.

    Args:
        own: whether it is a user's own file, which may have quotes in a .tsv too.
        encoding: a key of `bert_common.text_encoding.NAMES`; None: it is recognized.
    """
    if path.lower().endswith(".csv"):
        return read_csv(read_text(path, encoding), path)
    if own:
        return "\t", iter(read_tsv(read_text(path, encoding), path))
    return "\t", ((where, line.split("\t")) for where, line in read_lines(path))


def composed(name: str) -> str:
    """Returns the name of a column or a class with its Hangul composed (Unicode's NFC).

    Names of macOS's folders, and what is copied from them, have syllables taken apart into jamo,
    which look the same.
    """
    return unicodedata.normalize("NFC", name)


def read_header(rows: Iterator[Row], path: str) -> Row:
    """Returns the place and the cells of the header, the first row that `read_cells` returned."""
    where, header = next(rows, (path, []))
    if not any(name.strip() for name in header):
        raise InputError(f"{path} must hold a header. Received: none")
    return where, header


def read_text(path: str, encoding: str | None = None) -> str:
    """Reads a file as text; prints a recognized encoding other than UTF-8, once per file."""
    content = read_bytes(path)
    if encoding is None:
        encoding = detect_encoding(content[:SAMPLE_BYTES])
        said = os.path.abspath(path), encoding
        if encoding not in ("utf-8", "utf-8-sig") and said not in _noted:
            _noted.add(said)
            print(f"note: {path} is read as {NAMES[encoding]}", file=sys.stderr)
    return decode_text(content, path, encoding)


def read_parquet(path: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a .parquet file; requires pyarrow."""
    pyarrow = import_pyarrow(path, "Parquet")
    read_bytes(path)  # reports a missing or empty file as for other formats
    with report_damage(path, "Parquet"):
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(1024):
            yield from batch.to_pylist()


def read_objects(path: str, encoding: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the place of every object in a .json, .jsonl or .parquet file, and its values.

    The keys are `composed`.
    """
    if path.lower().endswith(".parquet"):
        entries = ((f"{path} row {i}", entry) for i, entry in enumerate(read_parquet(path), 1))
    elif path.lower().endswith(".jsonl"):
        lines = (row for row in read_lines(path, encoding) if row[1].strip())
        entries = ((where, read_json(line, where)) for where, line in lines)
    else:
        text = read_text(path, encoding).strip()
        if not text.startswith("["):
            raise InputError(
                f"{path} must hold a list of objects, [...]; lines of objects are .jsonl. "
                f"Received: {shortened(text)}"
            )
        entries = ((f"{path} entry {i}", entry) for i, entry in enumerate(read_json(text, path), 1))
    for where, entry in entries:
        check_object(entry, where)
        named = {composed(name): value for name, value in entry.items()}
        if len(named) < len(entry):
            raise InputError(f"{where} must name a key once. Received: {', '.join(entry)}")
        yield where, named


def check_object(entry: object, where: str) -> None:
    """Raises an `InputError` that names the place if a JSON value is not an object."""
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be an object. Received: {shortened(entry)}")


_KINDS = {str: "a string", int: "a whole number", list: "a list"}


def json_field(entry: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Returns a value of a JSON object, which must exist and have one of the types `kind`."""
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
    """Formats a value for a message, at most 60 characters."""
    return repr(value)[:60]


# The maximum number of allowed values in a message; texts mistaken for labels have thousands.
SHOWN_VALUES = 20


def first_of(values: Iterable[str]) -> str:
    """Lists allowed values for a message, only the first ones if there are many."""
    values = list(values)
    more = len(values) - SHOWN_VALUES
    return ", ".join(values[:SHOWN_VALUES]) + (f" and {more:,} more" if more > 0 else "")


def read_table(
    path: str, has_header: bool = True, encoding: str | None = None
) -> tuple[list[str], list[list[Any]]]:
    """Reads a file of examples; returns the names of its columns, and its rows' cells.

    The columns of a table without a header are named by their numbers. Lists and objects in JSON
    become JSON text.
    """
    if path.lower().endswith(TABLE_ENDINGS):
        rows = [cells for _, cells in read_cells(path, encoding=encoding)[1]]
        if has_header:
            return rows[0], rows[1:]
        return [str(number) for number in range(max(map(len, rows), default=0))], rows
    entries = [entry for _, entry in read_objects(path, encoding)]
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    return names, [[_as_cell(entry.get(name)) for name in names] for entry in entries]


def _as_cell(value):
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else value


def column_names(path: str, encoding: str | None = None, of_all: bool = False) -> list[str]:
    """Returns the column names of a file of examples: its header, or the first object's keys.

    `of_all`: the keys of all objects of a .json or .jsonl file instead, except those whose value is
    null in every object.
    """
    check_ending(path)
    if path.lower().endswith(TABLE_ENDINGS):
        _, header = read_header(read_cells(path, encoding=encoding)[1], path)
        return [composed(name.strip()) for name in header]
    objects = read_objects(path, encoding)
    if not of_all or path.lower().endswith(".parquet"):  # whose rows have the same keys
        objects = itertools.islice(objects, 1)
    values = (item for _, entry in objects for item in entry.items())
    names = list(dict.fromkeys(name for name, v in values if v is not None or not of_all))
    if not names:
        raise InputError(f"{path} must hold an example. Received: none")
    return names


def only_column(names: Sequence[str], known: Sequence[str], flag: str, path: str) -> str:
    """Returns the only column with a known name; raises an `InputError` for none or several."""
    found = [name for name in names if name.strip().lower() in known]
    if len(found) != 1:
        raise InputError(
            f"{flag} must name a column of {path} where not exactly one is called {known[0]} or "
            f"the like. Received: {', '.join(names) or 'no other column'}"
        )
    return found[0]


def has_column(names: Sequence[str], column: str | None) -> bool:
    """Returns True if a file may have a column: one of `names`, a number or a nested key."""
    return column is not None and (column in names or column.isdecimal() or "." in column)


def check_column(names: Sequence[str], column: str, flag: str, path: str) -> None:
    """Raises an `InputError` if a file with these columns lacks the one that a flag names."""
    if not has_column(names, column):
        raise InputError(
            f"{flag} must name a column of {path}: {', '.join(names)}. Received: {column}"
        )


def say_columns(path: str, columns: Mapping[str, str]) -> None:
    """Prints the columns of a file, kind -> name, and the flags that name others."""
    said = ", ".join(f"{kind} {name!r}" for kind, name in columns.items())
    flags = ", ".join(f"--{kind}_column" for kind in columns)
    end = "name others" if len(columns) > 1 else "names another"
    print(f"columns of {path}: {said} ({flags} {end})")


def read_lines(path: str, encoding: str | None = None) -> Iterator[tuple[str, str]]:
    """Yields the place and the text of every line; lines end in "\\n" or "\\r\\n".

    Empty lines at the end are left out. Encodings such as UTF-16 or cp949 are recognized.
    """
    for number, line in enumerate(read_text(path, encoding).rstrip("\r\n").split("\n"), 1):
        yield f"{path} line {number}", line.removesuffix("\r")
