"""Opens input files (of any encoding, gzip, Parquet or Arrow) as plain UTF-8 text."""

import contextlib
import functools
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.progress import progress
from bert_common.text_encoding import NAMES, SAMPLE_BYTES, decode_blocks, detect_encoding
from create_pretraining_data.engine.columns import check_column, read_column, table_kind
from create_pretraining_data.engine.splitting import LONGEST_JSON

# The number of bytes to read at a time.
_BLOCK = 1 << 20

# The first bytes of a gzip file. No UTF-8 text begins with them.
_GZIP_MAGIC = b"\x1f\x8b"

# How files of other kinds begin; parts of them would pass for text.
_PACKED = {
    "a zip archive": re.compile(rb"PK\x03\x04"),
    "a tar archive": re.compile(rb"(?s:.{257})ustar(?:\0|  \0)"),
    "a 7z archive": re.compile(rb"7z\xbc\xaf\x27\x1c"),
    "a bzip2 file": re.compile(rb"BZh[1-9]1AY&SY"),
    "an xz file": re.compile(rb"\xfd7zXZ\0"),
    "a zstd file": re.compile(rb"\x28\xb5\x2f\xfd"),
    "a RAR archive": re.compile(rb"Rar!\x1a\x07"),
    "an lz4 file": re.compile(rb"\x04\x22\x4d\x18"),
    "an lzma file": re.compile(rb"\]\0\0"),
    "a PDF file": re.compile(rb"%PDF-"),
    "a file of Word, Excel or Hangul": re.compile(rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    "a picture": re.compile(rb"\x89PNG\r\n|\xff\xd8\xff"),
}

# The suffixes of files whose lines are JSON; .gz may follow.
_JSON_NAMES = (".jsonl", ".ndjson", ".json")

# The suffixes of tables, which hold no lines of text.
_TABLE_NAMES = (".parquet", ".arrow")

TEXT_KEY = "text"

# Read without conversion; a byte-order mark is skipped.
_UTF8 = ("utf-8", "utf-8-sig")


class Source(NamedTuple):
    """Names an input file and says how to read it."""

    path: str
    kind: str  # "plain", "gzip", or a kind of table from `columns.table_kind`
    line_format: str  # the format of its plain text, one of `splitting.FORMATS`
    text_key: str  # the column or JSON key that holds the text
    encoding: str  # the encoding of its plain text, a key of `text_encoding.NAMES`

    @property
    def is_plain(self) -> bool:
        """True if the file itself is plain UTF-8 text."""
        return self.kind == "plain" and self.encoding in _UTF8

    @property
    def is_table(self) -> bool:
        """True if the file is a table, whose rows become lines of JSON."""
        return self.kind not in ("plain", "gzip")

    @property
    def plain_key(self) -> str:
        """The key of the text in the lines of the plain text, if they are JSON."""
        return TEXT_KEY if self.is_table else self.text_key


class OpenedText(NamedTuple):
    """Gives access to the plain text of a source."""

    file: BinaryIO  # the plain text
    position: Callable[[], int]  # returns the number of bytes of the source read so far
    left_out: Callable[[], int] = int  # returns the number of rows without text left out so far


def recognise(path: str, input_format: str | None = None, text_key: str = TEXT_KEY) -> Source:
    """Detects what a file holds by its first bytes and its name.

    Args:
        input_format: one of `splitting.FORMATS`; None to detect it by the name.
        text_key: the column or JSON key that holds the text.
    """
    with open(path, "rb") as file:
        head = file.read(8)
    if kind := table_kind(head):
        check_column(path, kind, text_key)
        return Source(path, kind, "jsonl", text_key, "utf-8")
    name = os.fspath(path).lower()
    if name.endswith(_TABLE_NAMES):  # a failed download, or a pointer of Git LFS
        raise InputError(
            f"{path} must be a Parquet or Arrow file, as its name says. Received: "
            + (f"a file that begins with {head!r}" if head else "an empty file")
        )
    kind = "gzip" if head.startswith(_GZIP_MAGIC) else "plain"
    if input_format is None:
        is_json = name.removesuffix(".gz").endswith(_JSON_NAMES)
        input_format = "jsonl" if is_json else "text"
    with _open_bytes(path, kind) as (_, plain):
        sample = plain.read(SAMPLE_BYTES)
    for name, beginning in _PACKED.items():
        if beginning.match(sample):
            raise InputError(
                f"{path} must be text, gzipped text or a table; unpack or convert anything else. "
                f"Received: {name}{' in gzip' if kind == 'gzip' else ''}"
            )
    return Source(path, kind, input_format, text_key, detect_encoding(sample))


def recognise_all(paths: Iterable[str], input_format: str | None, text_key: str) -> list[Source]:
    """Calls `recognise` for several files; prints one line per encoding other than UTF-8.

    Raises `InputError` if --text_key is given but all files are text: JSON would be read as text.
    """
    sources = [recognise(path, input_format, text_key) for path in paths]
    if text_key != TEXT_KEY and all(source.line_format == "text" for source in sources):
        raise InputError(
            "--text_key must be given for JSON lines (--input_format=jsonl, where the name does "
            f"not end in {', '.join(_JSON_NAMES)}) or tables. Received: --text_key={text_key}, "
            f"{sources[0].path} read as lines of text"
        )
    for encoding, name in NAMES.items():
        found = [source.path for source in sources if source.encoding == encoding]
        if found and encoding not in _UTF8:
            others = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
            print(f"{found[0]}{others}: read as {name}")
    return sources


@contextlib.contextmanager
def open_plain(source: Source) -> Iterator[OpenedText]:
    """Opens a source as `OpenedText`; the rows of a table are lines of JSON with "text"."""
    with contextlib.ExitStack() as stack:
        if source.is_table:
            rows = _JsonRows(source)
            file = io.BufferedReader(_Blocks(rows.read()), _BLOCK)
            yield OpenedText(file, rows.position, lambda: rows.empty)
            return
        file, plain = stack.enter_context(_open_bytes(source.path, source.kind))
        if source.encoding not in _UTF8:
            blocks = iter(functools.partial(plain.read, _BLOCK), b"")
            decoded = decode_blocks(blocks, source.encoding, source.path)
            plain = io.BufferedReader(_Blocks(text.encode() for text in decoded), _BLOCK)
        yield OpenedText(plain, file.tell)


@contextlib.contextmanager
def _open_bytes(path, kind):
    """Yields an open file and its decompressed contents; a damaged one is an `InputError`."""
    try:
        with open(path, "rb") as file:
            yield file, gzip.GzipFile(fileobj=file) if kind == "gzip" else file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} must be a complete gzip file. Received: {error}") from None


class _JsonRows:
    """Converts the rows of a table to lines of JSON, leaving out rows without a text."""

    def __init__(self, source):
        self.source, self.share, self.empty = source, 0.0, 0
        self._size = os.path.getsize(source.path)

    def position(self):
        return int(self.share * self._size)

    def read(self):
        path, kind, _, key, _ = self.source
        for row, (text, self.share) in enumerate(read_column(path, kind, key), start=1):
            if text is None:
                self.empty += 1
                continue
            line = json.dumps({TEXT_KEY: text}, ensure_ascii=False).encode() + b"\n"
            if len(line) > LONGEST_JSON:
                raise InputError(
                    f"{path}, row {row}: a text must have at most {LONGEST_JSON // 10**6} MB. "
                    f"Received: {len(line) // 10**6} MB"
                )
            yield line


class _Blocks(io.RawIOBase):
    """Makes an iterator of blocks of bytes readable as a file."""

    def __init__(self, blocks):
        self._blocks, self._rest = blocks, b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def write_plain(source: Source, target: str) -> int:
    """Writes the plain text of a source atomically; returns how many rows were left out."""
    path = source.path
    with (
        atomic_write(target) as plain,
        open_plain(source) as opened,
        progress(f"unpacking {os.path.basename(path)}", os.path.getsize(path), "B") as bar,
    ):
        while block := opened.file.read(_BLOCK):
            plain.write(block)
            bar.update(opened.position() - bar.n)
        return opened.left_out()
