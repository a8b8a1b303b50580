"""Character classes of google-research/bert: whitespace, control, punctuation, Chinese.

The general categories come from Python's `unicodedata`. Against Unicode 11, which Python 3.7
carried, Python 3.11 adds characters to the classes and takes one away: U+166D is a symbol now.
"""

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
