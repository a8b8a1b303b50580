"""Cuts text files into chunks of about equal bytes at document ends.

Text is one sentence a line with a blank line between documents, or JSON lines: an object with
"text", a document whose lines are its sentences.
"""

import bisect
import contextlib
import gzip
import itertools
import os
import secrets
import zlib
from typing import NamedTuple

from tokenization.errors import InputError
from tokenization.json_text import parse_json
from tokenization.progress import progress

# Of text, at most, but for the rest of the document at the end. Large enough that random next
# documents come from some hundred (an encyclopedia's article is a few kilobytes); small enough
# that a worker needs little memory, and that little is lost when it is killed.
CHUNK_BYTES = 2_000_000

# How far a document end is looked for. A longer document is cut between two sentences, so that
# memory stays bounded where nobody put blank lines.
LONGEST_SEARCH = 4 * CHUNK_BYTES

FORMATS = ("text", "jsonl")

# The first bytes of a gzip file. No UTF-8 text begins so.
_GZIP_MAGIC = b"\x1f\x8b"


class Source(NamedTuple):
    """One input file."""

    name: str  # as it was given, for messages
    path: str  # where its plain text is
    size: int  # bytes of that


class Range(NamedTuple):
    """A part of a source that begins and ends with a line."""

    source: Source
    start: int
    end: int


def is_gzip(path):
    """Whether a file is a gzip file, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC


@contextlib.contextmanager
def whole_gzip(path):
    """Turns what reading a damaged gzip file raises into an InputError that names it."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} must be a whole gzip file. Received: {error}") from None


def inflate(path, target):
    """Writes the contents of a gzip file to `target`, which is there once it is whole.

    Raises:
        InputError: the file is damaged, or `target` cannot be written.
    """
    partial = f"{target}.{secrets.token_hex(8)}.partial"
    try:
        with (
            whole_gzip(path),
            open(path, "rb") as packed,
            open(partial, "wb") as plain,
            progress(f"inflating {os.path.basename(path)}", os.path.getsize(path), "B") as bar,
        ):
            contents = gzip.GzipFile(fileobj=packed)
            while block := contents.read(1 << 20):
                plain.write(block)
                bar.update(packed.tell() - bar.n)
        os.replace(partial, target)
    except OSError as error:
        raise InputError(f"{target} must be writable. Received: {error.strerror}") from None
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def cut_into_chunks(sources, input_format):
    """Cuts all files, taken one after the other, into equal chunks of about `CHUNK_BYTES`.

    A chunk may hold several small files; every file ends its last document. The cut depends on
    the files alone.

    Args:
        sources: a list of `Source`.
        input_format: one of `FORMATS`.

    Returns:
        The chunks, each a list of `Range`; how many documents had to be cut.
    """
    ends = list(itertools.accumulate(source.size for source in sources))
    total = ends[-1]
    count = -(-total // CHUNK_BYTES)  # rounded up
    cuts, documents_cut = [0], 0
    for number in range(1, count):
        target = number * total // count
        if target < cuts[-1]:
            continue  # within a long document, which the last search went to the end of
        index = bisect.bisect_right(ends, target)
        begin = ends[index] - sources[index].size
        offset, is_inside = _document_end(sources[index], target - begin, input_format)
        if begin + offset > cuts[-1]:
            cuts.append(begin + offset)
            documents_cut += is_inside
    if total > cuts[-1]:
        cuts.append(total)
    chunks = []
    for start, end in itertools.pairwise(cuts):
        ranges, index = [], bisect.bisect_right(ends, start)
        while start < end:
            begin = ends[index] - sources[index].size
            stop = min(end, ends[index])
            if stop > start:
                ranges.append(Range(sources[index], start - begin, stop - begin))
            start, index = stop, index + 1
        chunks.append(ranges)
    return chunks, documents_cut


def _document_end(source, offset, input_format):
    """Where the first document that ends behind an offset ends; whether it had to be cut."""
    if offset == 0:
        return 0, False
    with open(source.path, "rb") as file:
        file.seek(offset - 1)
        file.readline()  # to the end of this line, which may be just there
        line_end = file.tell()
        if input_format == "jsonl":
            return line_end, False
        while file.tell() - line_end < LONGEST_SEARCH:
            line = file.readline()
            if not line.decode("utf-8", "replace").strip():  # blank, or the end of the file
                return file.tell(), False
        return line_end, True


def read_chunk(ranges, input_format):
    """Reads the documents of one chunk.

    Args:
        ranges: a list of `Range`.
        input_format: one of `FORMATS`.

    Returns:
        A list of documents, each a non-empty list of sentences, which are not empty.

    Raises:
        InputError: text that is not UTF-8, or a line that is no document; with file and line.
    """
    return [
        document
        for part in ranges
        for document in _DOCUMENTS[input_format](part, _read_text(part))
        if document
    ]


def _read_text(part):
    with open(part.source.path, "rb") as file:
        file.seek(part.start)
        content = file.read(part.end - part.start)
    if len(content) != part.end - part.start:
        raise InputError(
            f"{part.source.name} must stay as it is while it is read. Received: only "
            f"{part.start + len(content)} bytes of {part.source.size}"
        )
    # A byte-order mark is not part of the first word.
    skipped = 3 if part.start == 0 and content.startswith(b"\xef\xbb\xbf") else 0
    try:
        return content[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        position = skipped + error.start
        line = 1 + _lines_before(part) + content.count(b"\n", 0, position)
        column = position - content.rfind(b"\n", 0, position)
        raise InputError(
            f"{part.source.name}, line {line}: the text must be UTF-8. Received: byte "
            f"0x{content[position]:02x} at column {column} ({error.reason})"
        ) from None


def _lines_before(part):
    """Lines of the file before a part of it; read only when there is an error to tell."""
    lines, left = 0, part.start
    with open(part.source.path, "rb") as file:
        while left:
            block = file.read(min(left, 1 << 20))
            lines += block.count(b"\n")
            left -= len(block)
    return lines


def _text_documents(part, text):
    document = []
    # Split at \n alone: str.splitlines would also cut at U+0085 or U+2028 inside a sentence.
    for line in text.split("\n"):
        sentence = line.strip()
        if sentence:
            document.append(sentence)
        else:
            yield document
            document = []
    yield document


def _json_documents(part, text):
    for number, line in enumerate(text.split("\n")):
        if not line.strip():
            continue
        value = document_text(
            line, lambda n=number: f"{part.source.name}, line {1 + _lines_before(part) + n}"
        )
        yield [sentence for sentence in map(str.strip, value.split("\n")) if sentence]


def document_text(line, place):
    """The text of a document that is a line of JSON.

    Args:
        line: str.
        place: a function without arguments that says which file and line it is.

    Raises:
        InputError: the line is no document.
    """
    try:
        value = parse_json(line)
        problem = type(value).__name__
    except ValueError as error:
        value, problem = None, str(error)
    if isinstance(value, dict):
        value = value.get("text")
        problem = "none" if value is None else type(value).__name__
    if not isinstance(value, str):
        raise InputError(
            f'{place()}: a line must be a JSON object with "text", a string. Received: {problem}'
        )
    return value


_DOCUMENTS = {"text": _text_documents, "jsonl": _json_documents}
