"""What the graph form knows about characters, as arrays made from Python's `unicodedata`.

One version of Unicode decides, that of the Python that makes the tables: neither RE2 nor ICU is
asked what a character is. A saved graph keeps its tables.
"""

import functools
import sys
import unicodedata

import numpy as np

from tokenization.characters import is_chinese
from tokenization.normalization import STRIP_ACCENTS, korean_cleaner

CODE_POINTS = sys.maxunicode + 1
REPLACEMENT = 0xFFFD


@functools.cache
def assigned() -> tuple[int, ...]:
    """The code points that have properties of their own, by Unicode or by `CHINESE_BLOCKS`."""
    return tuple(
        code
        for code in range(CODE_POINTS)
        if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs") or is_chinese(chr(code))
    )


@functools.cache
def unassigned() -> np.ndarray:
    """bool [CODE_POINTS]: category Cn, which a later version of Unicode may fill."""
    return np.array([unicodedata.category(chr(code)) == "Cn" for code in range(CODE_POINTS)])


def members(characters) -> np.ndarray:
    """bool [CODE_POINTS]: which characters are among these."""
    table = np.zeros(CODE_POINTS, bool)
    table[[ord(character) for character in characters]] = True
    return table


@functools.cache
def having(test) -> np.ndarray:
    """bool [CODE_POINTS]: the characters of which `test` is true."""
    return members(filter(test, map(chr, assigned())))


@functools.cache
def cleaned(fold: bool, drop_invisible: bool, marker: str):
    """`replacements` of `korean_cleaner`."""
    table = korean_cleaner(fold, drop_invisible, marker)
    return replacements(lambda character: table[ord(character)])


@functools.cache
def replacements(replace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tables of a function from a character to a string.

    Args:
        replace: leaves unassigned and private characters as they are.

    Returns:
        int32 `values`, the code points of all strings that replace something, one after the
        other; int32 [CODE_POINTS] `starts`, where a character's string begins in `values`; int32
        [CODE_POINTS] `lengths`. A character that stays has length 1 and start -1.
    """
    values = []
    starts = np.full(CODE_POINTS, -1, np.int32)
    lengths = np.ones(CODE_POINTS, np.int32)
    for code in assigned():
        string = replace(chr(code))
        if string != chr(code):
            starts[code], lengths[code] = len(values), len(string)
            values += map(ord, string)
    return np.array(values, np.int32), starts, lengths


def single(replaced) -> tuple[np.ndarray, np.ndarray]:
    """int32 and bool [CODE_POINTS] of `replacements`: the one character that comes; is it one."""
    values, starts, lengths = replaced
    one = np.arange(CODE_POINTS, dtype=np.int32)
    changed = (lengths == 1) & (starts >= 0)
    one[changed] = values[starts[changed]]
    return one, lengths == 1


def decomposed_without_accents(character: str) -> str:
    """What FullTokenizer makes of a lower-case character."""
    return unicodedata.normalize("NFD", character).translate(STRIP_ACCENTS)


@functools.cache
def may_normalize() -> np.ndarray:
    """bool [CODE_POINTS]: characters that NFC may change, or that may change one before them."""
    table = np.zeros(CODE_POINTS, bool)
    seconds = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]  # by rule, not by decomposition
    for code in assigned():
        character = chr(code)
        decomposition = unicodedata.decomposition(character)
        if " " in decomposition and decomposition[0] != "<":
            seconds.append(int(decomposition.split()[1], 16))
        if unicodedata.combining(character) or unicodedata.normalize("NFC", character) != character:
            table[code] = True
    table[seconds] = True
    return table


@functools.cache
def casing() -> tuple[np.ndarray, np.ndarray]:
    """bool [CODE_POINTS] twice: what a final sigma regards as cased, what it looks past.

    `str.lower` itself is asked: sigma after "1" and such a character is final just if that
    character is cased and not looked past; after "A" and it, if it is cased or looked past.
    """
    cased, either = np.zeros(CODE_POINTS, bool), np.zeros(CODE_POINTS, bool)
    for code in assigned():
        cased[code] = f"1{chr(code)}\u03a3".lower()[-1] == "\u03c2"
        either[code] = f"A{chr(code)}\u03a3".lower()[-1] == "\u03c2"
    return cased, either & ~cased
