"""Splits text files at document ends into chunks of about equal size.

Text has one sentence per line and a blank line between documents. JSON lines are objects whose
"text" is a document with one sentence per line, or null, which is left out.
"""

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.json_text import parse_json

# The size of a chunk in bytes, without the rest of its last document. It is large enough for some
# hundred documents (an encyclopedia article has a few kilobytes), from which random next sentences
# are drawn, but small enough that a worker needs little memory and loses little work if killed.
CHUNK_BYTES = 2_000_000

# The distance within which the end of a document or line is searched. To limit memory, a longer
# document is cut between two sentences, and a longer line between two words.
LONGEST_SEARCH = 4 * CHUNK_BYTES

# The maximum bytes of a JSON line, which must be read whole.
LONGEST_JSON = 10_000_000

FORMATS = ("text", "jsonl")

# A line's end and a line of white space, as `str.strip` knows it. A search for it is ten times as
# fast as decoding every line.
_BLANK_LINE = re.compile(
    rb"\n(?:[\t\v-\r\x1c-\x20]++|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]"
    rb"|\xe2\x81\x9f|\xe3\x80\x80)*+\n"
)

# The value of a JSON line without a text.
NULL = "null"


class InputFile(NamedTuple):
    """Describes an input file as text."""

    name: str  # as given by the user, for messages
    path: str  # the file that has its plain text
    size: int  # of the plain text, in bytes
    line_format: str = "text"  # one of `FORMATS`
    text_key: str = "text"  # the key of the text in JSON lines


class TextRange(NamedTuple):
    """Marks a range of an input file: whole lines, or words of a very long line."""

    source: InputFile
    start: int
    end: int

    @property
    def size(self) -> int:
        """The size of the range in bytes."""
        return self.end - self.start


def cut_into_chunks(sources: Sequence[InputFile]) -> tuple[list[list[TextRange]], set[int]]:
    """Cuts all files, in their order, into equal chunks of about `CHUNK_BYTES`.

    A chunk may hold several small files; the end of a file ends a document. The chunks depend only
    on the files. A JSON line longer than `LONGEST_JSON` is an `InputError`.

    Returns:
        The chunks, and the numbers of the chunks that begin inside a document because it is longer
        than `LONGEST_SEARCH`.
    """
    ends = list(itertools.accumulate(source.size for source in sources))
    total = ends[-1]
    count = -(-total // CHUNK_BYTES)  # rounded up
    cuts = [0]
    inside: set[int] = set()
    for number in range(1, count):
        target = number * total // count
        if target < cuts[-1]:
            continue  # inside a long document, whose end was found before
        index = bisect.bisect_right(ends, target)
        begin = ends[index] - sources[index].size
        offset, is_inside = _document_end(sources[index], target - begin)
        if begin + offset > cuts[-1]:
            cuts.append(begin + offset)
            if is_inside:
                inside.add(begin + offset)
    if total > cuts[-1]:
        cuts.append(total)
    chunks: list[list[TextRange]] = []
    continued: set[int] = set()
    for start, end in itertools.pairwise(cuts):
        if start in inside:
            continued.add(len(chunks))
        ranges, index = [], bisect.bisect_right(ends, start)
        while start < end:
            begin = ends[index] - sources[index].size
            stop = min(end, ends[index])
            if stop > start:
                ranges.append(TextRange(sources[index], start - begin, stop - begin))
            start, index = stop, index + 1
        _check_length(ranges[-1])
        chunks.append(ranges)
    return chunks, continued


def _document_end(source, offset):
    """Returns the first document end after an offset, and True if the document is cut there."""
    if offset == 0:
        return 0, False
    with open(source.path, "rb") as file:
        file.seek(offset - 1)
        # Reads to the end of this line, which may be at the offset itself.
        if source.line_format == "jsonl":
            while (block := file.readline(1 << 20)) and not block.endswith(b"\n"):
                pass
            return file.tell(), False
        line = file.readline(LONGEST_SEARCH)
        if len(line) == LONGEST_SEARCH and not line.endswith(b"\n"):
            line = line[1:]
            space = re.search(rb"\s+", line)
            # If there is no space, the cut is at least not inside a character.
            inside = (k for k in range(4) if line[k] & 0xC0 != 0x80)
            return offset + (space.end() if space else next(inside, 0)), True
        line_end = file.tell()
        for part in (128, 16, 1):  # most documents end soon
            file.seek(line_end - 1)
            lines = file.read(LONGEST_SEARCH // part + 1)
            if blank := _BLANK_LINE.search(lines):
                return line_end - 1 + blank.end(), False
        if len(lines) <= LONGEST_SEARCH:  # the end of the file
            return file.tell(), False
        if last := lines[lines.rfind(b"\n") + 1 :]:  # the search ends inside a line
            last += file.readline(LONGEST_SEARCH - len(last))
            if not last.decode("utf-8", "replace").strip():
                return file.tell(), False
        return line_end, True


def _check_length(part):
    """Raises InputError for a JSON line that would take too much memory, a chunk's last line."""
    if part.source.line_format != "jsonl" or part.size <= LONGEST_JSON + CHUNK_BYTES:
        return
    with open(part.source.path, "rb") as file:
        file.seek(part.start)
        lines = file.read(CHUNK_BYTES).count(b"\n")  # before the long line
    raise InputError(
        f"{part.source.name}, line {1 + _lines_before(part) + lines}: a line must be a JSON object "
        f"of at most {LONGEST_JSON // 10**6} MB. Received: {part.size // 10**6} MB"
    )


def read_chunk_text(ranges: Iterable[TextRange]) -> list[list[str]]:
    """Reads the documents of one chunk as non-empty lists of non-empty sentences.

    Raises an `InputError` with file and line for text that is not UTF-8 or an invalid JSON line.
    """
    documents, _ = read_chunk(ranges)
    return documents


def read_chunk(ranges: Iterable[TextRange]) -> tuple[list[list[str]], int]:
    """Reads a chunk as `read_chunk_text` does; also returns how many lines have a null text."""
    documents: list[list[str]] = []
    without_text = 0
    for part in ranges:
        for document in _DOCUMENTS[part.source.line_format](part, _read_text(part)):
            if document is None:
                without_text += 1
            elif document:
                documents.append(document)
    return documents, without_text


def take_text(documents: Iterable[Iterable[str]], characters: int) -> list[list[str]]:
    """Returns the first `characters` of documents, as lines by document; cuts the last line."""
    taken = []
    for document in documents:
        lines = []
        for line in document:
            if characters > 0:
                lines.append(line[:characters])
                characters -= len(line)
        if lines:
            taken.append(lines)
    return taken


def _read_text(part):
    with open(part.source.path, "rb") as file:
        file.seek(part.start)
        content = file.read(part.end - part.start)
    if len(content) != part.end - part.start:
        raise InputError(
            f"{part.source.name} must not change while it is read. Received: only "
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
    """Counts the lines before a range of a file, for error messages."""
    lines, left = 0, part.start
    with open(part.source.path, "rb") as file:
        while left:
            block = file.read(min(left, 1 << 20))
            lines += block.count(b"\n")
            left -= len(block)
    return lines


def _text_documents(part, text):
    document = []
    # Split at \n only: str.splitlines would also split at U+0085 or U+2028 inside a sentence.
    for line in text.split("\n"):
        sentence = line.strip()
        if sentence:
            document.append(sentence)
        else:
            yield document
            document = []
    yield document


def _json_documents(part, text):
    def place(number):
        return f"{part.source.name}, line {1 + _lines_before(part) + number}"

    for number, line in enumerate(text.split("\n")):
        if not line.strip():
            continue
        value = document_text(line, part.source.text_key, functools.partial(place, number))
        if value is None:
            yield None
            continue
        yield [sentence for sentence in map(str.strip, value.split("\n")) if sentence]


def document_text(line: str, key: str, place: Callable[[], str]) -> str | None:
    """Returns the text of a document from its JSON line; None if the text is null.

    Args:
        key: the key of the text; "a.b" is key b of the object under key a.
        place: returns the file and line for error messages.
    """
    try:
        value = parse_json(line)
    except ValueError as error:
        value, problem = None, str(error)
    else:
        problem = type(value).__name__
        if isinstance(value, dict):
            value, problem = _look_up(value, key)
    if not isinstance(value, str) and problem != NULL:
        raise InputError(
            f'{place()}: a line must be a JSON object with "{key}", a string (--text_key names '
            f"another). Received: {problem}"
        )
    return value


def _look_up(value, key):
    """Returns the value under a key of a JSON object, or None, and its type or what is wrong."""
    for name in [key] if key in value else key.split("."):
        if not isinstance(value, dict):
            return None, f"{type(value).__name__} before {name!r}"
        if name not in value:
            return None, f"none; the keys are {', '.join(map(repr, value))}" if value else "none"
        value = value[name]
    return value, NULL if value is None else type(value).__name__


_DOCUMENTS = {"text": _text_documents, "jsonl": _json_documents}
