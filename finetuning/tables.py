"""Reads the rows of tables and of JSON lines, in the encodings and formats that people have."""

import functools
import sys

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.text_encoding import NAMES, SAMPLE_BYTES, decode_text, detect_encoding
from finetuning.csv_tables import read_csv, read_tsv


def read_cells(path, own=True, encoding=None):
    """Yields the place of every row of a .csv or tab-separated file, and its cells.

    Args:
        path: the file.
        own: whether it is a user's own, which may have quotes in a .tsv too.
        encoding: a key of `bert_common.text_encoding.NAMES`; None: it is recognised.
    """
    if path.lower().endswith(".csv"):
        return read_csv(read_text(path, encoding), path)
    if own:
        return iter(read_tsv(read_text(path, encoding), path))
    return ((where, line.split("\t")) for where, line in read_lines(path))


def read_text(path, encoding=None):
    """A whole file as text; where its encoding is recognised and not UTF-8, it is said.

    Raises:
        InputError: bytes that are no text in the encoding; names line and byte.
    """
    content = read_bytes(path)
    if encoding is None:
        encoding = detect_encoding(content[:SAMPLE_BYTES])
        if encoding not in ("utf-8", "utf-8-sig"):
            note_encoding(path, encoding)
    return decode_text(content, path, encoding)


def read_parquet(path):
    """Yields the rows of a .parquet file, dicts.

    Raises:
        InputError: pyarrow is not installed, or the file is no Parquet file.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f".parquet files need pyarrow (pip install -e '.[parquet]'). Received: {error}"
        ) from None
    read_bytes(path)  # a missing or empty file is said as of others
    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(1024):
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{path} must be a whole Parquet file. Received: {reason}") from None


def read_table(path, has_header=True, encoding=None):
    """All rows of a file of examples, with every column: the columns' names, and lists of cells.

    A table without a header has its columns' numbers as names.
    """
    if path.lower().endswith((".csv", ".tsv")):
        rows = [cells for _, cells in read_cells(path, encoding=encoding)]
        if has_header:
            return rows[0], rows[1:]
        return [str(number) for number in range(max(map(len, rows), default=0))], rows
    if path.lower().endswith(".parquet"):
        entries = list(read_parquet(path))
    elif path.lower().endswith(".jsonl"):
        lines = read_lines(path, encoding)
        entries = [read_json(line, where) for where, line in lines if line.strip()]
    else:
        entries = read_json(read_text(path, encoding), path)
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    return names, [["" if entry.get(n) is None else entry[n] for n in names] for entry in entries]


def column_names(path, encoding=None):
    """The names of the columns of a file of examples: its header, or the first object's keys."""
    if path.lower().endswith((".csv", ".tsv")):
        header = next(read_cells(path, encoding=encoding), ("", [""]))[1]
        return [name.strip() for name in header]
    if path.lower().endswith(".parquet"):
        return list(next(read_parquet(path), {}))
    if path.lower().endswith(".jsonl"):
        lines = (row for row in read_lines(path, encoding) if row[1].strip())
        where, line = next(lines, (f"{path} line 1", "{}"))
        entry = read_json(line, where)
    else:
        entries = read_json(read_text(path, encoding), path)
        entry = entries[0] if isinstance(entries, list) and entries else {}
    if not isinstance(entry, dict):
        raise InputError(f"{path} must hold objects. Received: {entry!r:.60}")
    return list(entry)


@functools.cache
def note_encoding(path, encoding):
    """Says once in which encoding a file is read."""
    print(f"note: {path} is read as {NAMES[encoding]}", file=sys.stderr)


def read_lines(path, encoding=None):
    """Yields the place of every line and its text; lines end in "\\n" or "\\r\\n".

    Blank lines at the end are left out. Text in UTF-16 or cp949 is recognised.
    """
    content = read_bytes(path)
    found = encoding or detect_encoding(content[:SAMPLE_BYTES])
    if found not in ("utf-8", "utf-8-sig"):
        content = decode_text(content, path, found).encode("utf-8")
        if encoding is None:
            note_encoding(path, found)
    lines = content.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        where = f"{path} line {number}"
        try:
            yield where, line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where} must be UTF-8. Received: byte 0x{line[error.start]:02x}"
            ) from None
