"""Defines translation tables that turn text into words separated by spaces.

Each table maps a character to its replacement, so that one `str.translate`, in C, converts a whole
text. Order of use, as in google-research/bert: clean and put spaces around ideographs, lower-case,
decompose and drop accents, put spaces around punctuation, then `str.split()`.
"""

import functools
import unicodedata
from collections.abc import Callable
from typing import Literal, NamedTuple

from tokenization.characters import (
    compatible_form,
    fold_width,
    is_chinese,
    is_control,
    is_emoji_joint,
    is_invisible,
    is_punctuation,
    is_whitespace,
)

# Unicode's normalization forms.
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


class CharacterMap(dict[int, str]):
    """A table for `str.translate` that calls `replace` once for each distinct character."""

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__()
        self.replace = replace

    def __missing__(self, code_point: int) -> str:
        replacement = self[code_point] = self.replace(chr(code_point))
        return replacement


def _clean(character: str) -> str:
    # Dropped, not turned into a space: a zero-width space joins its neighbours, as in Google's
    # code. A lone surrogate, which UTF-8 cannot encode, is treated as U+FFFD; Google keeps it.
    if character == "\ufffd" or is_control(character) or unicodedata.category(character) == "Cs":
        return ""
    return " " if is_whitespace(character) else character


class Cleaning(NamedTuple):
    """How KoreanTokenizer cleans characters."""

    compatible: bool  # replace each by its compatible form, as NFKC does
    fold: bool  # replace full-width forms by the usual ones
    drop_invisible: bool  # drop Hangul fillers, variation selectors and the like
    keep_joints: bool  # keep the controls of emoji of several code points
    marker: str  # a character to replace by a space, or ""


def _clean_korean(character: str, cleaning: Cleaning) -> str:
    if cleaning.compatible:
        form = compatible_form(character)
        return "".join(_clean_compatible(part, cleaning) for part in form)
    return _clean_compatible(character, cleaning)


def _clean_compatible(character: str, cleaning: Cleaning) -> str:
    _, fold, drop_invisible, keep_joints, marker = cleaning
    if fold:
        character = fold_width(character)
    if keep_joints and is_emoji_joint(character):
        return character
    if drop_invisible and is_invisible(character):
        return ""
    # A marker must occur at the end of eojeols only, so it and its equivalents become spaces.
    if marker and unicodedata.normalize("NFC", character) == marker:
        return " "
    return _clean(character)


def _space_around(tests: tuple[Callable[[str], bool], ...], character: str) -> str:
    return f" {character} " if any(test(character) for test in tests) else character


CLEAN = CharacterMap(_clean)
CLEAN_AND_SPACE_CHINESE = CharacterMap(
    lambda each: f" {each} " if is_chinese(each) else _clean(each)
)
SPACE_PUNCTUATION = CharacterMap(functools.partial(_space_around, (is_punctuation,)))
STRIP_ACCENTS = CharacterMap(lambda each: "" if unicodedata.category(each) == "Mn" else each)

# (split_punctuation, split_chinese_characters) -> the table that puts spaces around such characters
ISOLATING = {
    (True, True): CharacterMap(functools.partial(_space_around, (is_punctuation, is_chinese))),
    (True, False): SPACE_PUNCTUATION,
    (False, True): CharacterMap(functools.partial(_space_around, (is_chinese,))),
    (False, False): None,
}


@functools.cache
def korean_cleaner(cleaning: Cleaning) -> CharacterMap:
    """Returns the table that cleans text for KoreanTokenizer."""
    return CharacterMap(functools.partial(_clean_korean, cleaning=cleaning))
