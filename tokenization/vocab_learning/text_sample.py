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


class TextFile(NamedTuple):
    """A file of text, in any format."""

    name: str  # for messages
    size: int  # bytes of all lines
    read_lines: Callable[[], Iterable[bytes]]  # as `split_lines` yields them


def read_sample(
    texts: list[TextFile], most_bytes: int, seed: int, counts: Counter[str]
) -> Iterator[str]:
    """Yields a random sample of lines, about `most_bytes` in all; a smaller text is kept whole.

    Args:
        seed: determines which lines are kept.
        counts: updated with bytes, lines, sampled_bytes and sampled_lines; each part of a line
            over `LONGEST_READ` is a line.

    Raises:
        InputError: a byte of the sample is not UTF-8.
    """
    total = sum(text.size for text in texts)
    rng = random.Random(seed)
    with progress("reading the text", total, "B") as bar:
        for text in texts:
            number = 1
            for line in text.read_lines():
                counts["bytes"] += len(line)
                counts["lines"] += 1
                bar.update(len(line))
                if total <= most_bytes or rng.random() < most_bytes / total:
                    counts["sampled_bytes"] += len(line)
                    counts["sampled_lines"] += 1
                    decoded = decode_line(line, text.name, number)
                    if decoded:
                        yield decoded
                if line.endswith(b"\n"):
                    number += 1


def split_lines(file: BinaryIO) -> Iterator[bytes]:
    """Splits at "\\n" only; yields a line over `LONGEST_READ` in parts, cut at spaces."""
    rest = b""
    while block := file.readline(LONGEST_READ):
        block = rest + block
        rest = b""
        if not block.endswith(b"\n") and len(block) >= LONGEST_READ:
            cut = _place_to_cut(block)
            block, rest = block[:cut], block[cut:]
        yield block
    if rest:
        yield rest


def _place_to_cut(block):
    """Returns where to cut the beginning of a long line: after a space, else before a character."""
    space = block.rfind(b" ")
    if space >= 0:
        return space + 1
    cut = len(block) - 1
    while block[cut] & 0xC0 == 0x80 and len(block) - cut < 4:  # inside a character
        cut -= 1
    return cut


def decode_line(line: bytes, name: str, number: int) -> str:
    """Decodes a line and strips whitespace around it; raises InputError if it is not UTF-8."""
    encoding = "utf-8-sig" if number == 1 else "utf-8"  # a byte-order mark is not text
    try:
        return line.decode(encoding).strip()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}, line {number}: the text must be UTF-8. Received: byte "
            f"0x{line[error.start]:02x} at column {error.start + 1} ({error.reason})"
        ) from None


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
