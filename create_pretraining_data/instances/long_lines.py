"""Splits lines that are longer than a row: at sentence ends, then between words.

A row that holds a whole paragraph would be truncated, and most of the paragraph would be lost.
"""

import itertools
import re
from typing import NamedTuple

LONG_LINES = ("split", "truncate")

# White space after the end of a sentence, with the quotation marks and brackets that close there.
_SENTENCE_END = re.compile(
    r"""(?<=[.!?…。！？])["'”’)\]」』》]*\s+|(?<=[。！？])(?=[^\s"'”’)\]」』》])"""
)


class LineLimits(NamedTuple):
    """When lines are split, and how long the parts may be, in pieces."""

    longest: int  # a longer line is split into its sentences
    part: int  # a sentence longer than `longest` is cut into parts of at most this


def limits_for(rules):
    """The `LineLimits` of `PairRules`, or None if long lines are truncated."""
    if rules.long_lines == "truncate":
        return None
    if rules.objective == "none":
        room = rules.max_seq_length - 2  # [CLS] [SEP]
        return LineLimits(room, room)
    room = rules.max_seq_length - 3  # [CLS] [SEP] [SEP]
    return LineLimits(room, max(1, room // 2))  # two parts fit, one for A and one for B


def split_line(line, cut, limits):
    """Splits a line if it is longer than the limit.

    Args:
        line: text.
        cut: a function from text to its non-empty words, each a list of pieces.
        limits: `LineLimits`.

    Returns:
        A list of parts, each a list of words; a line that is not too long is one part.
    """
    sentences = _sentences(line) if len(line) > limits.longest else [line]
    parts = [cut(sentence) for sentence in sentences]
    is_long = sum(map(_length, parts)) > limits.longest
    if len(sentences) > 1 and not is_long:  # many characters, few pieces
        parts = [cut(line)]
        is_long = _length(parts[0]) > limits.longest
    elif is_long and len(sentences) == 1:
        sentences = _sentences(line)
        parts = parts if len(sentences) == 1 else [cut(sentence) for sentence in sentences]
    if is_long:
        parts = itertools.chain.from_iterable(_between_words(part, limits) for part in parts)
    return [part for part in parts if part]


def _sentences(line):
    ends = [match.end() for match in _SENTENCE_END.finditer(line)]
    return [line[a:b] for a, b in zip([0, *ends], [*ends, len(line)], strict=True) if line[a:b]]


def _length(words):
    return sum(map(len, words))


def _between_words(words, limits):
    """Cuts a sentence longer than the limit into parts; a word longer than a part is cut too."""
    if _length(words) <= limits.longest:
        return [words]
    parts, length = [[]], 0
    for word in words:
        for start in range(0, len(word), limits.part):
            piece = word[start : start + limits.part]
            if length + len(piece) > limits.part:
                parts.append([])
                length = 0
            parts[-1].append(piece)
            length += len(piece)
    return parts
