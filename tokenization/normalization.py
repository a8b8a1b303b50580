"""Translation tables that clean text into words separated by spaces.

Each table maps one character to its replacement, so that a whole text is handled by one
`str.translate` in C. Order of use, as in google-research/bert: clean with Chinese spaced, lower
case, decompose with accents dropped, space punctuation, then `str.split()`.
"""

import unicodedata
from collections.abc import Callable

from tokenization.characters import is_chinese, is_control, is_punctuation, is_whitespace


class CharacterMap(dict):
    """A table for `str.translate` that asks `replace` once per character it meets."""

    def __init__(self, replace: Callable[[str], str]):
        super().__init__()
        self.replace = replace

    def __missing__(self, code_point: int) -> str:
        replacement = self[code_point] = self.replace(chr(code_point))
        return replacement


def _clean(character: str) -> str:
    # Dropped, not turned into a space: a zero-width space joins its neighbours, as in Google.
    if character == "\ufffd" or is_control(character):
        return ""
    return " " if is_whitespace(character) else character


def _clean_or_space_chinese(character: str) -> str:
    return f" {character} " if is_chinese(character) else _clean(character)


def _space_punctuation(character: str) -> str:
    return f" {character} " if is_punctuation(character) else character


def _strip_accent(character: str) -> str:
    return "" if unicodedata.category(character) == "Mn" else character


CLEAN = CharacterMap(_clean)
CLEAN_AND_SPACE_CHINESE = CharacterMap(_clean_or_space_chinese)
SPACE_PUNCTUATION = CharacterMap(_space_punctuation)
STRIP_ACCENTS = CharacterMap(_strip_accent)
