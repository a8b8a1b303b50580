"""Tracks where each character of a normalized text was in the original."""

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TypeVar

from tokenization.characters import repeatable_characters, second_characters
from tokenization.normalization import Form


class AlignedText:
    """A text with each character's span in the original text; pass no `spans` for the original.

    Operations return a new text, which is the result of the same operation on a string.
    """

    def __init__(self, text: str, spans: list[tuple[int, int]] | None = None) -> None:
        self.text = text
        self.spans = [(i, i + 1) for i in range(len(text))] if spans is None else spans

    def __str__(self) -> str:
        return self.text

    def translate(self, table: Mapping[int, str]) -> "AlignedText":
        """Does what `str.translate` does."""
        return self._expand([table[ord(character)] for character in self.text])

    def replace(self, pattern: re.Pattern[str], replacement: str) -> "AlignedText":
        """Does what `re.sub` does; the replacement has the span of the match."""
        text, spans, start = [], [], 0
        for match in pattern.finditer(self.text):
            text += [self.text[start : match.start()], replacement]
            spans += self.spans[start : match.start()]
            spans += [self.span(*match.span())] * len(replacement)
            start = match.end()
        return AlignedText("".join([*text, self.text[start:]]), spans + self.spans[start:])

    def lower(self) -> "AlignedText":
        """Does what `str.lower` does."""
        lowered, parts, start = self.text.lower(), [], 0
        for character in self.text:  # the neighbours of a sigma change its form, not its length
            end = start + len(character.lower())
            parts.append(lowered[start:end])
            start = end
        return self._expand(parts)

    def normalize(self, form: Form) -> "AlignedText":
        """Does what `unicodedata` does; characters that compose or are reordered share a span."""
        if unicodedata.is_normalized(form, self.text):
            return self
        parts, spans, start = [], [], 0
        for end in (*_segment_ends(self.text), len(self.text)):
            if end == start:
                continue
            first = unicodedata.normalize(form, self.text[start])
            rest = unicodedata.normalize(form, self.text[start + 1 : end])
            whole = unicodedata.normalize(form, self.text[start:end])
            parts.append(whole)
            if whole != first + rest:
                spans += [(self.spans[start][0], self.spans[end - 1][1])] * len(whole)
            else:  # the characters after the first do not change it
                spans += [self.spans[start]] * len(first)
                if rest == self.text[start + 1 : end]:
                    spans += self.spans[start + 1 : end]
                else:
                    spans += [(self.spans[start + 1][0], self.spans[end - 1][1])] * len(rest)
            start = end
        return AlignedText("".join(parts), spans)

    def edges(self) -> tuple[str, str]:
        """Returns the first and last character, whitespace as a space; "" if the text is empty."""
        first, last = (" " if c.isspace() else c for c in (self.text[:1], self.text[-1:]))
        return first, last

    def split(self) -> list["AlignedText"]:
        """Does what `str.split` does."""
        return [
            AlignedText(word[0], self.spans[word.start() : word.end()])
            for word in re.finditer(r"\S+", self.text)
        ]

    def with_single_spaces(self) -> "AlignedText":
        """Does what `" ".join(text.split())` does."""
        words = self.split()
        spans: list[tuple[int, int]] = []
        for word in words:
            if spans:
                spans.append((spans[-1][1], word.spans[0][0]))
            spans += word.spans
        return AlignedText(" ".join(word.text for word in words), spans)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Returns the original span of the characters from `start` to `end`.

        An empty range has an empty span, or, between two parts of one original character, its span.
        """
        if start < end:
            return self.spans[start][0], self.spans[end - 1][1]
        place = self.spans[start - 1][1] if start else 0
        if start < len(self.spans) and self.spans[start][0] < place:
            return self.spans[start][0], place
        return place, place

    def with_end(self, marker: str, following: int | None = None) -> "AlignedText":
        """Appends a marker, whose characters have empty spans at the end.

        If the next word begins (`following`) before that end, because both come from one original
        character, they have the span of the last character.
        """
        start, end = self.spans[-1]
        span = (start, end) if following is not None and following < end else (end, end)
        return AlignedText(self.text + marker, self.spans + [span] * len(marker))

    def _expand(self, parts: list[str]) -> "AlignedText":
        spans: list[tuple[int, int]] = []
        for part, span in zip(parts, self.spans, strict=True):
            spans += (span,) * len(part)
        return AlignedText("".join(parts), spans)


AnyText = TypeVar("AnyText", str, AlignedText)


def normalize(form: Form, text: AnyText) -> AnyText:
    """Normalizes a text as `unicodedata.normalize` does."""
    if isinstance(text, AlignedText):
        return text.normalize(form)
    return unicodedata.normalize(form, text)


def shorten_runs(text: AnyText, length: int) -> AnyText:
    """Shortens runs of the same repeatable character (`repeatable_characters`) to a length."""
    raw = str(text)
    kept = _without_surplus(raw, length)
    if not kept:
        return text
    shorter = "".join(raw[part] for part in kept)
    if isinstance(text, AlignedText):
        return AlignedText(shorter, [span for part in kept for span in text.spans[part]])
    return shorter


def _without_surplus(text: str, length: int) -> list[slice]:
    """Returns the slices to keep so that no run is longer than `length`; [] if none is longer."""
    longer = _runs_longer_than(length).finditer(text)
    runs = [run for run in longer if run[1] in repeatable_characters()]
    if not runs:
        return []
    starts = [0, *(run.end() for run in runs)]
    ends = [*(run.start() + length for run in runs), len(text)]
    return list(map(slice, starts, ends))


@functools.cache
def _runs_longer_than(length: int) -> re.Pattern[str]:
    return re.compile(rf"(.)\1{{{length},}}", re.DOTALL)


def _segment_ends(text: str) -> Iterator[int]:
    """Yields the places across which no characters compose or are reordered."""
    seconds = second_characters()
    for place, character in enumerate(text):
        if not unicodedata.combining(character) and character not in seconds:
            yield place
