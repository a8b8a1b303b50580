"""Defines the character classes of google-research/bert and of KoreanTokenizer's options.

The general categories come from Python's `unicodedata`. Compared with Unicode 11, the version of
Python 3.7, Python 3.11 adds characters to the classes and removes one: U+166D is a symbol now.
"""

import functools
import sys
import unicodedata

# Google's list: unified ideographs, extensions A to E, compatibility ideographs and their
# supplement. It lacks later extensions, Hangul, kana and radicals.
CHINESE_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

# To Unicode, $ + < = > ^ ` | ~ are symbols; to Google, every printable ASCII character that is
# neither letter, digit nor space is punctuation.
ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

# Default ignorable code points outside category Cf (which is always dropped): Hangul fillers,
# variation selectors, Khmer's inherent vowels, the combining grapheme joiner.
INVISIBLE_BLOCKS = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180D),
    (0x180F, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)

MAX_WORD_CHARACTERS = 200  # google-research/bert: a longer word is one [UNK]

# The modern conjoining jamo, whose sequences spell the 11,172 syllables.
FIRST_SYLLABLE, LAST_SYLLABLE = 0xAC00, 0xD7A3
INITIALS = tuple(map(chr, range(0x1100, 0x1113)))
VOWELS = tuple(map(chr, range(0x1161, 0x1176)))
FINALS = tuple(map(chr, range(0x11A8, 0x11C3)))


def is_whitespace(character: str) -> bool:
    """Returns True for tab, line ends and space separators (category Zs)."""
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def is_control(character: str) -> bool:
    """Returns True for categories Cc and Cf, except tab and line ends, which are whitespace."""
    return character not in "\t\n\r" and unicodedata.category(character) in ("Cc", "Cf")


def is_punctuation(character: str) -> bool:
    """Returns True for every category P and for ASCII punctuation in Google's broad sense."""
    return character in ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")


def is_chinese(character: str) -> bool:
    """Returns True for the ideographs (Hanja too) that Google splits off as separate words."""
    code_point = ord(character)
    return any(first <= code_point <= last for first, last in CHINESE_BLOCKS)


def is_invisible(character: str) -> bool:
    """Returns True for invisible characters except controls: fillers, variation selectors."""
    code_point = ord(character)
    return any(first <= code_point <= last for first, last in INVISIBLE_BLOCKS)


def is_emoji_joint(character: str) -> bool:
    """Returns True for the controls inside emoji sequences: the joiner, the tags of flags."""
    return character == "\u200d" or "\U000e0020" <= character <= "\U000e007f"


def is_syllable(character: str) -> bool:
    """Returns True for a composed Hangul syllable."""
    return "\uac00" <= character <= "\ud7a3"


def fold_width(character: str) -> str:
    """Returns the usual form of a full-width character, such as "A" for "Ａ", "₩" for "￦"."""
    kind, _, code_point = unicodedata.decomposition(character).partition(" ")
    return chr(int(code_point, 16)) if kind == "<wide>" else character


def compatible_form(character: str) -> str:
    """Returns a character's NFKD form ("1" for "①"), or the character itself if NFD is the same.

    Compatibility jamo stay, and half-width jamo become compatibility jamo: NFKC would turn both
    into conjoining jamo, and ㅋㅋㅠㅠ into ㅋ큐ㅠ.
    """
    if "\u3131" <= character <= "\u318e":
        return character
    if "\uffa0" <= character <= "\uffdc":
        _, _, code_point = unicodedata.decomposition(character).partition(" ")
        return chr(int(code_point, 16)) if code_point else character
    form = unicodedata.normalize("NFKD", character)
    return character if form == unicodedata.normalize("NFD", character) else form


@functools.cache
def repeatable_characters() -> frozenset[str]:
    """Returns the characters that people repeat for emphasis.

    These are the compatibility jamo, "^", and the symbols of category So: emoji, hearts, stars.
    """
    symbols = (c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "So")
    return frozenset(("^", *map(chr, range(0x3131, 0x318F)), *symbols))


@functools.cache
def second_characters() -> frozenset[str]:
    """Returns the characters that may compose with the previous one or move before it.

    They are marks, vowels, finals, and letters that decompose into marks alone (three of Tibetan).
    """
    seconds = {*VOWELS, *FINALS}  # Hangul composes by rule, not by decomposition
    for character in map(chr, range(sys.maxunicode + 1)):
        decomposition = unicodedata.decomposition(character)
        if " " in decomposition and decomposition[0] != "<":
            first, second = (chr(int(code, 16)) for code in decomposition.split())
            seconds.add(second)
            if unicodedata.combining(first):
                seconds.add(character)
    return frozenset(seconds)


def jamo_of(syllable: str) -> str:
    """Decomposes a syllable into its two or three conjoining jamo, as NFD does."""
    index, final = divmod(ord(syllable) - FIRST_SYLLABLE, len(FINALS) + 1)
    initial, vowel = divmod(index, len(VOWELS))
    return INITIALS[initial] + VOWELS[vowel] + (FINALS[final - 1] if final else "")
