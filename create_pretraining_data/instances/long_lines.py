"""Splits lines that are longer than a row into sentences, and long sentences between words.

Sentences are found by their punctuation, which is fast and needs no other package. The module
`sentences` finds more of them, in every line, with an analyser.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # importers that only build rows of ids need no tokenizer
    from tokenization.base import TokenizerInterface

# What to do with lines that are longer than a row.
LONG_LINES = ("split", "truncate")

_MARKS = ".!?…。！？"
_CLOSING = "\"'”’»)]」』】〉》"

# A full stop ends no sentence after a number (1., 2026.11.27.) or a single letter (가., J.).
_NO_END = re.compile(r"\W*([\d.,:/-]+|\w)")
_LONGEST_NO_END = 24


def split_at_punctuation(line: str) -> list[str]:
    """Splits a line into sentences; joined with spaces, they give the line again."""
    sentences, start = [], 0
    for word in re.finditer(r"\S+", line):
        if _ends_sentence(word[0]):
            sentences.append(line[start : word.end()].strip())
            start = word.end()
    return [sentence for sentence in [*sentences, line[start:].strip()] if sentence]


def _ends_sentence(word):
    word = word.rstrip(_CLOSING)
    if not word.endswith(tuple(_MARKS)):
        return False
    is_short = word[-1] == "." and len(word) <= _LONGEST_NO_END
    return not (is_short and _NO_END.fullmatch(word[:-1]))


def split_line(
    line: str, words: list[list[str]], tokenizer: "TokenizerInterface", most: int, part: int
) -> list[list[list[str]]]:
    """Splits a line of more than `most` tokens, the size of a row, into sentences or their parts.

    Args:
        words: the words of the line, as the tokenizer's `tokenize_words` returns them.
        part: the minimum number of tokens in a part of a sentence that is longer than a row.

    Returns:
        Non-empty lists of words.
    """
    sentences = split_at_punctuation(line)
    found = [words]
    if len(sentences) > 1:
        found = [list(filter(None, tokenizer.tokenize_words(text))) for text in sentences]
    return [
        short
        for sentence in found
        if sentence
        for short in ([sentence] if sum(map(len, sentence)) <= most else cut_words(sentence, part))
    ]


def cut_words(words: Iterable[list[str]], part: int) -> list[list[list[str]]]:
    """Cuts words into lists of at least `part` tokens, each as short as possible.

    The last list may be shorter. A word of more than `part` tokens is cut too.
    """
    parts, current, count = [], [], 0
    for word in (w[k : k + part] for w in words for k in range(0, len(w), part)):
        current.append(word)
        count += len(word)
        if count >= part:
            parts.append(current)
            current, count = [], 0
    return [*parts, current] if current else parts
