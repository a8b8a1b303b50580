"""Reads a sample of text, of bounded size, for learning a vocabulary."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from bert_common.errors import InputError
from bert_common.progress import progress

LONGEST_READ = 1 << 20  # bytes; a longer line is read in parts, so that memory stays bounded

# Longer "words" are addresses, base64 or text without spaces, which teach no morphemes.
LONGEST_WORD = 64

# An analyser's time and memory grow with its input, so no sentence has more characters than this.
LONGEST_SENTENCE = 1000

# In a text file, the share of damaged bytes is smaller; in EUC-JP and compressed files, it is two
# fifths or more. Fewer bytes say little: the sample may have a single line of a small file.
MOST_DAMAGED, FEWEST_DAMAGED = 0.25, 1000


class TextFile(NamedTuple):
    """A file of text, in any format."""

    name: str  # for messages
    size: int  # bytes of all lines
    read_lines: Callable[[], Iterable[bytes]]  # as `split_lines` yields them


def read_sample(
    texts: list[TextFile], most_bytes: int, seed: int, strict_utf8: bool, counts: Counter[str]
) -> Iterator[str]:
    """Yields a random sample of lines, about `most_bytes` in all; a smaller text is kept whole.

    Args:
        seed: determines which lines are kept.
        strict_utf8: whether to refuse bytes that are not UTF-8; otherwise they are skipped and
            counted.
        counts: updated with bytes, lines, sampled_bytes, sampled_lines, lines_not_utf8 and
            bytes_not_utf8 (both of the sample).

    Raises:
        InputError: with `strict_utf8`, any byte is not UTF-8; otherwise, more than `FEWEST_DAMAGED`
            bytes and more than the share `MOST_DAMAGED` of a file's sample are not.
    """
    total = sum(text.size for text in texts)
    rng = random.Random(seed)
    with progress("reading the text", total, "B") as bar:
        for text in texts:
            sampled, damaged, number = counts["sampled_bytes"], counts["bytes_not_utf8"], 1
            newest = newest_sampled = newest_damaged = 0  # line numbers: parts count once
            for line in text.read_lines():
                line_number, number = number, number + line.endswith(b"\n")
                counts["bytes"] += len(line)
                counts["lines"] += line_number != newest
                newest = line_number
                bar.update(len(line))
                if total > most_bytes and rng.random() >= most_bytes / total:
                    continue
                counts["sampled_bytes"] += len(line)
                counts["sampled_lines"] += line_number != newest_sampled
                newest_sampled = line_number
                before = counts["bytes_not_utf8"]
                decoded = _decode(line, text.name, line_number, strict_utf8, counts)
                if counts["bytes_not_utf8"] > before:
                    counts["lines_not_utf8"] += line_number != newest_damaged
                    newest_damaged = line_number
                if decoded:
                    yield decoded
            sampled = counts["sampled_bytes"] - sampled
            damaged = counts["bytes_not_utf8"] - damaged
            if damaged > max(FEWEST_DAMAGED, MOST_DAMAGED * sampled):
                raise InputError(
                    f"{text.name}: the text must be UTF-8, or in an encoding that is recognized. "
                    f"Received: {damaged:,} of {sampled:,} bytes that are not"
                )


def split_lines(file: BinaryIO) -> Iterator[bytes]:
    """Splits at "\\n" only; yields a line over `LONGEST_READ` in parts, cut at spaces."""
    rest = b""
    while block := file.readline(LONGEST_READ):
        block = rest + block
        rest = b""
        if not block.endswith(b"\n") and len(block) >= LONGEST_READ:
            # If a megabyte has no space, cut before a byte that begins a character.
            cut = block.rfind(b" ") + 1 or max(
                len(block) - back for back in range(1, 5) if block[-back] & 0xC0 != 0x80
                or back == 4
            )  # fmt: skip
            block, rest = block[:cut], block[cut:]
        yield block
    if rest:
        yield rest


def decode_line(line: bytes, name: str, number: int) -> str:
    """Decodes a line and strips whitespace around it; raises InputError if it is not UTF-8."""
    try:
        return line.decode(_encoding(number)).strip()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}, line {number}: the text must be UTF-8. Received: byte "
            f"0x{line[error.start]:02x} at column {error.start + 1} ({error.reason})"
        ) from None


def _encoding(number):
    return "utf-8-sig" if number == 1 else "utf-8"  # a byte-order mark is not text


def _decode(line: bytes, name: str, number: int, strict_utf8: bool, counts: Counter[str]) -> str:
    try:
        return decode_line(line, name, number)
    except InputError:
        if strict_utf8:
            raise
    text = line.decode(_encoding(number), errors="ignore")
    counts["bytes_not_utf8"] += len(line) - len(text.encode("utf-8"))
    return text.strip()


def read_sentences(
    lines: Iterable[str], split_words: Callable[[str], list[str]], characters: Counter[str]
) -> Iterator[str]:
    """Yields words joined by single spaces, in parts short enough for an analyser.

    Args:
        split_words: the tokenizer's function that splits a text into words.
        characters: updated with each character as a piece, "가" at the beginning of a word, "##가"
            elsewhere; words too long for learning count here too.
    """
    for line in lines:
        sentence: list[str] = []
        length = 0
        for word in split_words(line):
            characters[word[0]] += 1
            for character in word[1:]:
                characters["##" + character] += 1
            if len(word) > LONGEST_WORD:
                continue
            if length + len(word) > LONGEST_SENTENCE:
                yield " ".join(sentence)
                sentence, length = [], 0
            sentence.append(word)
            length += len(word) + 1
        if sentence:
            yield " ".join(sentence)
