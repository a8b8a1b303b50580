"""Opens input files of every kind as plain UTF-8 text: other encodings, gzip, Parquet, Arrow."""

import contextlib
import functools
import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.progress import progress
from bert_common.text_encoding import NAMES, SAMPLE_BYTES, decode_blocks, detect_encoding
from create_pretraining_data.engine.columns import check_column, read_column, table_kind
from create_pretraining_data.engine.splitting import LONGEST_JSON

# How much is read at a time.
_BLOCK = 1 << 20

# The first bytes of a gzip file. No UTF-8 text begins with them.
_GZIP_MAGIC = b"\x1f\x8b"

# The ends of the names of files whose lines are JSON, compressed or not.
_JSON_NAMES = (".jsonl", ".ndjson", ".json")

TEXT_KEY = "text"

# Read as it is; a mark at the beginning is passed over.
_UTF8 = ("utf-8", "utf-8-sig")


class Source(NamedTuple):
    """An input file, and how to read it."""

    path: str
    kind: str  # "plain", "gzip", or a kind of table, as `columns.table_kind` has them
    line_format: str  # of its plain text: one of `splitting.FORMATS`
    text_key: str  # the column, or the key of a JSON object, that holds the text
    encoding: str  # of its plain text, a key of `text_encoding.NAMES`

    @property
    def is_plain(self) -> bool:
        """Whether the file itself is plain UTF-8 text."""
        return self.kind == "plain" and self.encoding in _UTF8

    @property
    def is_table(self) -> bool:
        """Whether its rows become lines of JSON."""
        return self.kind not in ("plain", "gzip")

    @property
    def plain_key(self) -> str:
        """The key of the text in the lines of its plain text, if they are JSON."""
        return TEXT_KEY if self.is_table else self.text_key


class OpenedText(NamedTuple):
    """The plain text of a source."""

    file: BinaryIO  # its lines
    position: Callable[[], int]  # how many bytes of the source have been read
    left_out: Callable[[], int] = int  # how many rows without a text were left out so far


def recognise(path: str, input_format: str | None = None, text_key: str = TEXT_KEY) -> Source:
    """Finds out what a file holds, by its first bytes and its name.

    Args:
        input_format: one of `splitting.FORMATS`; None to tell it by the name.
        text_key: where rows and JSON objects have the text.
    """
    with open(path, "rb") as file:
        head = file.read(8)
    if kind := table_kind(head):
        check_column(path, kind, text_key)
        return Source(path, kind, "jsonl", text_key, "utf-8")
    kind = "gzip" if head.startswith(_GZIP_MAGIC) else "plain"
    if input_format is None:
        name = path.lower().removesuffix(".gz")
        input_format = "jsonl" if name.endswith(_JSON_NAMES) else "text"
    with _open_bytes(path, kind) as (_, plain):
        encoding = detect_encoding(plain.read(SAMPLE_BYTES))
    return Source(path, kind, input_format, text_key, encoding)


def recognise_all(paths: Iterable[str], input_format: str | None, text_key: str) -> list[Source]:
    """As `recognise`, for several files; prints which are not UTF-8, a line for each encoding.

    A --text_key is refused where all of them are lines of text: JSON would be learned as text.
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
    """Opens a source; yields its `OpenedText`. A table's rows are lines of JSON with "text"."""
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
    """Opens a file; yields it and its decompressed contents. A damaged one is an InputError."""
    try:
        with open(path, "rb") as file:
            yield file, gzip.GzipFile(fileobj=file) if kind == "gzip" else file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} must be a complete gzip file. Received: {error}") from None


class _JsonRows:
    """The rows of a table as lines of JSON; those without a text are left out."""

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
    """A file of blocks of bytes that come one after the other."""

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
    """Writes the plain text of a source, atomically; returns how many rows were left out."""
    path = source.path
    with (
        atomic_write(target) as plain,
        open_plain(source) as opened,
        progress(f"unpacking {os.path.basename(path)}", os.path.getsize(path), "B") as bar,
    ):
        while block := opened.file.read(_BLOCK):
            plain.write(block)
            bar.update(opened.position() - bar.n)
        plain.flush()
        os.fsync(plain.fileno())  # a resumed run relies on it, even after a power failure
        return opened.left_out()
