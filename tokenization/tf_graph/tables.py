"""Computes character tables from Python's `unicodedata`, for look-ups in a TensorFlow graph.

This way a single version of Unicode decides, the version of the Python that computes the tables,
not RE2's or ICU's. A saved graph keeps its tables.

Shapes: B texts, C characters.
"""

import functools
import sys
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from tokenization.characters import is_chinese, second_characters

# Values, starts and lengths, as `replacements` returns them.
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

CODE_POINTS = sys.maxunicode + 1
REPLACEMENT = 0xFFFD


class Table:
    """Holds an int32 or bool value for each code point, in pages; equal pages are stored once."""

    def __init__(self, values: np.ndarray) -> None:
        pages, index = np.unique(values.reshape(-1, 256), axis=0, return_inverse=True)
        self._pages = pages.reshape(-1)
        self._starts = (index.reshape(-1) * 256).astype(np.int32)

    def __call__(self, code_points: tf.Tensor) -> tf.Tensor:
        """Looks up int32 code points of any shape."""
        starts = tf.gather(self._starts, tf.bitwise.right_shift(code_points, 8))
        return tf.gather(self._pages, starts + (code_points & 255))


class Replacements:
    """Replaces characters by strings as `str.translate` does, with arrays from `replacements`."""

    def __init__(self, arrays: Arrays) -> None:
        values, starts, lengths = arrays
        self._values = np.append(values, np.int32(0))  # never empty
        self._starts, self._lengths = Table(starts), Table(lengths)

    def __call__(
        self, characters: tf.Tensor, splits: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Replaces code points [C] with row splits [B + 1].

        Returns the new characters and row splits, and the index of each one's old character.
        """
        lengths = self._lengths(characters)
        ends = tf.cumsum(lengths)
        source = tf.repeat(tf.range(tf.size(characters)), lengths)
        within = tf.range(tf.size(source)) - tf.gather(ends - lengths, source)
        starts = tf.gather(self._starts(characters), source)
        replaced = tf.gather(
            self._values, tf.maximum(starts, 0) + within * tf.cast(starts >= 0, tf.int32)
        )
        result = tf.where(starts < 0, tf.gather(characters, source), replaced)
        splits = tf.cast(tf.gather(tf.concat([[0], ends], axis=0), splits), tf.int64)
        return result, splits, source


def shift(values: tf.Tensor, steps: int, first: Any) -> tf.Tensor:
    """Moves values [C] to the right by `steps` and fills the beginning with `first`."""
    return tf.concat([tf.fill([steps], tf.cast(first, values.dtype)), values], axis=0)[
        : tf.size(values)
    ]


def utf8_sizes(code_points: tf.Tensor) -> tf.Tensor:
    """Returns the number of bytes of each code point [C] in UTF-8, int64 [C]."""
    return 1 + sum(tf.cast(code_points >= least, tf.int64) for least in (0x80, 0x800, 0x10000))


def places_in_texts(rows: tf.RaggedTensor) -> tf.Tensor:
    """Returns (place, place + 1) of each character of texts [B, (C)] in its text, int32 [C, 2]."""
    starts = tf.cast(tf.ragged.range(rows.row_lengths()).values, tf.int32)
    return tf.stack([starts, starts + 1], axis=1)


@functools.cache
def assigned() -> tuple[int, ...]:
    """Returns the code points that have properties, in Unicode or in `CHINESE_BLOCKS`."""
    return tuple(
        code
        for code in range(CODE_POINTS)
        if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs") or is_chinese(chr(code))
    )


@functools.cache
def unassigned() -> np.ndarray:
    """Returns bool [CODE_POINTS]: category Cn, which later versions of Unicode may assign."""
    return np.array([unicodedata.category(chr(code)) == "Cn" for code in range(CODE_POINTS)])


def members(characters: Iterable[str]) -> np.ndarray:
    """Returns bool [CODE_POINTS]: whether a character is among these."""
    table = np.zeros(CODE_POINTS, bool)
    table[[ord(character) for character in characters]] = True
    return table


@functools.cache
def having(test: Callable[[str], Any]) -> np.ndarray:
    """Returns bool [CODE_POINTS]: whether a character passes a test."""
    return members(filter(test, map(chr, assigned())))


@functools.cache
def replacements(replace: Callable[[str], str], further: tuple[int, ...] = ()) -> Arrays:
    """Tabulates a function from a character to a string.

    Args:
        replace: the function, which does not change unassigned and private characters.
        further: code points of such characters that it changes nevertheless.

    Returns:
        int32 `values`, the code points of all replacements, one after another; int32 [CODE_POINTS]
        `starts`, where a character's replacement begins in `values`; int32 [CODE_POINTS] `lengths`.
        An unchanged character has start -1 and length 1.
    """
    values: list[int] = []
    starts = np.full(CODE_POINTS, -1, np.int32)
    lengths = np.ones(CODE_POINTS, np.int32)
    for code in sorted({*assigned(), *further}):
        string = replace(chr(code))
        if string != chr(code):
            starts[code], lengths[code] = len(values), len(string)
            values += map(ord, string)
    return np.array(values, np.int32), starts, lengths


def single(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Finds the replacements, in arrays from `replacements`, that are a single character.

    Returns:
        int32 [CODE_POINTS], that character; bool [CODE_POINTS], whether it is a single one.
    """
    values, starts, lengths = arrays
    one = np.arange(CODE_POINTS, dtype=np.int32)
    changed = (lengths == 1) & (starts >= 0)
    one[changed] = values[starts[changed]]
    return one, lengths == 1


@functools.cache
def decomposing(strip_accent: Callable[[str], str]) -> Callable[[str], str]:
    """Returns the function that decomposes a character (NFD) and drops its accents."""

    def decompose(character):
        return "".join(map(strip_accent, unicodedata.normalize("NFD", character)))

    return decompose


@functools.cache
def may_normalize() -> np.ndarray:
    """Returns bool [CODE_POINTS]: whether NFC may change a character or the one before it."""
    table = members(second_characters())
    for code in assigned():
        character = chr(code)
        if unicodedata.combining(character) or unicodedata.normalize("NFC", character) != character:
            table[code] = True
    return table


@functools.cache
def casing() -> tuple[np.ndarray, np.ndarray]:
    """Finds the characters that matter for lower-casing a final sigma, by trying `str.lower`.

    A sigma after "1" and a character is final if and only if that character is cased and not
    ignored; after "A" and a character, if and only if it is cased or ignored.

    Returns:
        bool [CODE_POINTS], whether a character is cased; bool [CODE_POINTS], whether it is ignored.
    """
    cased, either = np.zeros(CODE_POINTS, bool), np.zeros(CODE_POINTS, bool)
    for code in assigned():
        cased[code] = f"1{chr(code)}\u03a3".lower()[-1] == "\u03c2"
        either[code] = f"A{chr(code)}\u03a3".lower()[-1] == "\u03c2"
    return cased, either & ~cased
