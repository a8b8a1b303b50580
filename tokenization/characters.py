"""Character classes: google-research/bert's, and those that the Korean switches need.

The general categories come from Python's `unicodedata`. Against Unicode 11, which Python 3.7
carried, Python 3.11 adds characters to the classes and takes one away: U+166D is a symbol now.
"""

import functools
import sys
import unicodedata

# Google's list: unified ideographs, extensions A to E, compatibility ideographs with their
# supplement. Later extensions, Hangul, kana and radicals are not in it.
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

# Unicode files $ + < = > ^ ` | ~ under symbols; Google counts every printable ASCII
# character that is neither letter, digit nor space as punctuation.
ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

# Default ignorable code points that are not of category Cf (which is dropped always): the Hangul
# fillers, the variation selectors, Khmer's inherent vowels, the combining grapheme joiner.
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
    """True for tab, line ends and the space separators (category Zs)."""
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def is_control(character: str) -> bool:
    """True for categories Cc and Cf, save tab and line ends, which are whitespace."""
    return character not in "\t\n\r" and unicodedata.category(character) in ("Cc", "Cf")


def is_punctuation(character: str) -> bool:
    """True for every category P and for ASCII punctuation in Google's wide sense."""
    return character in ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")


def is_chinese(character: str) -> bool:
    """True for the ideographs (Hanja too) that Google sets apart as words of their own."""
    code_point = ord(character)
    return any(first <= code_point <= last for first, last in CHINESE_BLOCKS)


def is_invisible(character: str) -> bool:
    """True for what shows nothing without being a control: fillers, variation selectors."""
    code_point = ord(character)
    return any(first <= code_point <= last for first, last in INVISIBLE_BLOCKS)


def is_syllable(character: str) -> bool:
    """True for the composed Hangul syllables."""
    return "\uac00" <= character <= "\ud7a3"


def fold_width(character: str) -> str:
    """Returns the usual form of a full-width one, such as "A" for "Ａ", "₩" for "￦"."""
    kind, _, code_point = unicodedata.decomposition(character).partition(" ")
    return chr(int(code_point, 16)) if kind == "<wide>" else character


@functools.cache
def repeatable_characters() -> frozenset[str]:
    """Returns what people repeat to show a feeling.

    These are the compatibility jamo, "^", and every symbol of category So: emoji, hearts, stars.
    """
    symbols = (c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "So")
    return frozenset(("^", *map(chr, range(0x3131, 0x318F)), *symbols))


def jamo_of(syllable: str) -> str:
    """Returns the two or three conjoining jamo of a composed syllable, as NFD does."""
    index, final = divmod(ord(syllable) - FIRST_SYLLABLE, len(FINALS) + 1)
    initial, vowel = divmod(index, len(VOWELS))
    return INITIALS[initial] + VOWELS[vowel] + (FINALS[final - 1] if final else "")
