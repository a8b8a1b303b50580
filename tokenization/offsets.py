"""Text whose characters remember where they stood before normalisation."""

import functools
import re
import sys
import unicodedata
from collections.abc import Mapping
from itertools import chain

from tokenization.normalization import cuts_of_runs, without


class Aligned:
    """A text with the span of each character in the text that it was made from.

    Every method returns a new one, whose text is what the same step makes of a plain string.

    Args:
        text: the text.
        spans: first character, one after the last, for each character; without it the text is
            the original itself.
    """

    def __init__(self, text: str, spans: list[tuple[int, int]] | None = None):
        self.text = text
        self.spans = [(i, i + 1) for i in range(len(text))] if spans is None else spans

    def translate(self, table: Mapping[int, str]) -> "Aligned":
        """As `str.translate`."""
        return self._expand([table[ord(character)] for character in self.text])

    def lower(self) -> "Aligned":
        """As `str.lower`."""
        lowered, parts, start = self.text.lower(), [], 0
        for character in self.text:  # a final sigma depends on its neighbours, but not in length
            end = start + len(character.lower())
            parts.append(lowered[start:end])
            start = end
        return self._expand(parts)

    def normalize(self, form: str) -> "Aligned":
        """As `unicodedata.normalize`; what composes or changes places shares one span."""
        if unicodedata.is_normalized(form, self.text):
            return self
        parts, spans, start = [], [], 0
        for end in (*_segment_ends(self.text), len(self.text)):
            if end == start:
                continue
            first = unicodedata.normalize(form, self.text[start])
            whole = unicodedata.normalize(form, self.text[start:end])
            parts.append(whole)
            if whole == first + unicodedata.normalize(form, self.text[start + 1 : end]):
                spans += [self.spans[start]] * len(first)  # those after it do not change it
                start += 1
                whole = whole[len(first) :]
            spans += [(self.spans[min(start, end - 1)][0], self.spans[end - 1][1])] * len(whole)
            start = end
        return Aligned("".join(parts), spans)

    def shorten_runs(self, length: int) -> "Aligned":
        """Without what `cuts_of_runs` cuts."""
        cuts = cuts_of_runs(self.text, length)
        return Aligned(
            "".join(without(self.text, cuts)), list(chain.from_iterable(without(self.spans, cuts)))
        )

    def split(self) -> list["Aligned"]:
        """As `str.split`."""
        return [
            Aligned(word[0], self.spans[word.start() : word.end()])
            for word in re.finditer(r"\S+", self.text)
        ]

    def with_single_spaces(self) -> "Aligned":
        """As `" ".join(text.split())`."""
        words, spans = self.split(), []
        for word in words:
            if spans:
                spans.append((spans[-1][1], word.spans[0][0]))
            spans += word.spans
        return Aligned(" ".join(word.text for word in words), spans)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` stood; an empty span between neighbours."""
        if start < end:
            return self.spans[start][0], self.spans[end - 1][1]
        place = self.spans[start - 1][1] if start else 0
        return place, place

    def with_end(self, marker: str) -> "Aligned":
        """Appends what stands for no character; its span is empty, at the end."""
        end = self.spans[-1][1]
        return Aligned(self.text + marker, self.spans + [(end, end)] * len(marker))

    def _expand(self, parts: list[str]) -> "Aligned":
        spans = []
        for part, span in zip(parts, self.spans, strict=True):
            spans += (span,) * len(part)
        return Aligned("".join(parts), spans)


def _segment_ends(text: str):
    """Yields places with nothing to compose or to reorder across them."""
    seconds = _seconds()
    for place, character in enumerate(text):
        if not unicodedata.combining(character) and character not in seconds:
            yield place


@functools.cache
def _seconds() -> frozenset[str]:
    """The characters that compose with the one before them: marks, vowels, final consonants."""
    found = set(map(chr, [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]))  # by rule
    for character in map(chr, range(sys.maxunicode + 1)):
        decomposition = unicodedata.decomposition(character)
        if " " in decomposition and decomposition[0] != "<":
            found.add(chr(int(decomposition.split()[1], 16)))
    return frozenset(found)
