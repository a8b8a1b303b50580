"""WordPiece tokenization for Korean, from text to pieces, with Python's standard library alone.

The steps: clean the characters, lower-case, normalize, shorten runs, split into words, mark the
ends of words, then cut each word by greedy longest match. `tokenizer_config.json` says under
"source_tokenizer" which of them apply.
"""

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Any

UNKNOWN = "[UNK]"

# A word of more characters is one [UNK], unless characters are unknown one by one.
MAX_WORD_CHARACTERS = 200

# Google's list of ideographs; each becomes a separate word.
CHINESE_BLOCKS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip

# Hangul fillers, variation selectors and the like, which are no control characters.
INVISIBLE_BLOCKS = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
)  # fmt: skip

ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

# Pieces of the UTF-8 bytes of characters that have none themselves.
BYTE_PIECES = {f"<0x{byte:02X}>": byte for byte in range(256)}

# Words in the cache; longer ones are rare and not kept.
MAX_CACHED_WORDS, MAX_CACHED_LENGTH = 100_000, 200


class KoreanWordPiece:
    """Cuts text into pieces of a vocabulary.

    Args:
        vocab: the id of each piece.
        options: "source_tokenizer" of tokenizer_config.json; every option must be there.
    """

    def __init__(self, vocab: dict[str, int], options: dict[str, Any]) -> None:
        self.options = options
        self.prefix = prefix = options["continuation_prefix"]
        self.marker = options["word_end_marker"]
        self.marks_eojeols = options["word_end_marker_at"] == "eojeol"
        self.by_character = options["unknown"] != "word"
        self.by_bytes = options["unknown"] == "bytes"
        # What can begin a word, and what can continue one -> the piece.
        self.begin: dict[str, str] = {}
        self.inside: dict[str, str] = {}
        for piece in vocab:
            if piece == UNKNOWN and self.by_character:
                continue
            if self.by_bytes and piece.removeprefix(prefix) in BYTE_PIECES:
                continue
            if prefix and piece.startswith(prefix) and piece != prefix:
                self.inside[piece[len(prefix) :]] = piece
            elif piece:
                self.begin[piece] = piece
        if not prefix:
            self.inside = self.begin
        self._longest_begin = _longest_by_first_character(self.begin)
        self._longest_inside = _longest_by_first_character(self.inside)
        # Where the marker represents spaces, one in the text is read as a space.
        marker = self.marker if self.marks_eojeols else ""
        self._clean = _Table(functools.partial(_clean, options=options, marker=marker))
        self._split = _Table(functools.partial(_split, options=options))
        self._cache: dict[str, tuple[str, ...]] = {}

    def tokenize(self, text: str) -> list[str]:
        """Cuts a text into pieces."""
        return [piece for word in self.words(text) for piece in self.pieces(word)]

    def normalize(self, text: str) -> str:
        """Returns the text before it is split into words."""
        options = self.options
        text = text.translate(self._clean)
        if options["do_lower_case"]:
            text = text.lower()
        if options["normalization"]:  # what NFKC does beside NFC, _clean did
            text = unicodedata.normalize("NFC", text)
        if options["shorten_runs"]:
            length = options["shorten_runs"]
            text = re.sub(
                rf"(.)\1{{{length},}}",
                lambda run: run[1] * length if _is_repeatable(run[1]) else run[0],
                text,
                flags=re.DOTALL,
            )
        return text

    def words(self, text: str) -> list[str]:
        """Splits a text into words, with their markers."""
        text = self.normalize(text)
        if self.marks_eojeols:
            groups = [eojeol.translate(self._split).split() for eojeol in text.split()]
        else:
            groups = [[word] for word in text.translate(self._split).split()]
        marked = len(groups) if self.options["mark_final_word"] else len(groups) - 1
        for group in groups[: max(0, marked)]:
            group[-1] += self.marker
        return [word for group in groups for word in group]

    def pieces(self, word: str) -> tuple[str, ...]:
        """Cuts a word by greedy longest match, from the left."""
        pieces = self._cache.get(word)
        if pieces is None:
            pieces = tuple(self._match(word))
            if len(word) <= MAX_CACHED_LENGTH:
                if len(self._cache) >= MAX_CACHED_WORDS:
                    self._cache.clear()
                self._cache[word] = pieces
        return pieces

    def join(self, pieces: list[str]) -> str:
        """Returns the text that pieces represent, its words separated by spaces."""
        prefix, text = self.prefix, ""
        for piece in self._join_bytes(pieces) if self.by_bytes else pieces:
            if prefix and piece.startswith(prefix) and piece != prefix:
                text += piece[len(prefix) :]
            else:
                text += piece if self.marker else " " + piece
        if self.marker:
            text = text.replace(self.marker, " ")
        if self.options["normalization"]:  # composes the jamo of a syllable
            text = unicodedata.normalize("NFC", text)
        return text.strip()

    def _match(self, word):
        if len(word) > MAX_WORD_CHARACTERS and not self.by_character:
            return [UNKNOWN]
        table, longest = self.begin, self._longest_begin
        matched, start = [], 0
        while start < len(word):
            reach = longest.get(word[start], 0)
            for end in range(min(len(word), start + reach), start, -1):
                piece = table.get(word[start:end])
                if piece is not None:
                    matched.append(piece)
                    break
            else:
                end = start + 1
                if self.options["jamo_fallback"] and "\uac00" <= word[start] <= "\ud7a3":
                    first, *rest = unicodedata.normalize("NFD", word[start])
                    matched += [table[first], *(self.inside[jamo] for jamo in rest)]
                elif self.by_bytes:
                    matched += self._bytes_of(word[start], table is self.inside)
                elif self.by_character:
                    matched.append(UNKNOWN)
                else:
                    return [UNKNOWN]
            start, table, longest = end, self.inside, self._longest_inside
        return matched

    def _bytes_of(self, character, inside):
        """The pieces of a character's bytes; inside a word the first one has the prefix."""
        first, *rest = (f"<0x{byte:02X}>" for byte in character.encode("utf-8"))
        prefix = self.prefix if inside and character > "\x7f" else ""
        return [prefix + first, *rest]

    def _join_bytes(self, pieces):
        """Replaces the bytes of each character by it, with the prefix that its first byte has.

        The byte of an ASCII character has none; if a token begins words so, the byte is inside one.
        """
        joined, place = [], 0
        while place < len(pieces):
            piece = pieces[place]
            place += 1
            byte = BYTE_PIECES.get(piece.removeprefix(self.prefix))
            if byte is None:
                joined.append(piece)
                continue
            content = bytes([byte])
            most = (byte >= 0xC2) + (byte >= 0xE0) + (byte >= 0xF0)  # bytes that follow it
            for piece_of_rest in pieces[place : place + most]:
                if not 0x80 <= BYTE_PIECES.get(piece_of_rest, 0) < 0xC0:
                    break
                content += bytes([BYTE_PIECES[piece_of_rest]])
                place += 1
            try:
                character = content.decode("utf-8")
            except UnicodeDecodeError:
                character = "\ufffd"
            inside = piece not in BYTE_PIECES or (byte < 0x80 and character in self.begin)
            joined.append((self.prefix if inside else "") + character)
        return joined


class _Table(dict[int, str]):
    """A table for `str.translate` that computes each character once."""

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__()
        self.replace = replace

    def __missing__(self, code_point: int) -> str:
        replacement = self[code_point] = self.replace(chr(code_point))
        return replacement


def _clean(character, options, marker):
    """Drops control characters and lone surrogates, turns whitespace into spaces."""
    if options["normalization"] == "NFKC":
        form = _compatible_form(character)
        return "".join(_clean_compatible(part, options, marker) for part in form)
    return _clean_compatible(character, options, marker)


def _compatible_form(character):
    """What NFKC makes of a character and NFC does not; compatibility jamo stay."""
    if "\u3131" <= character <= "\u318e":
        return character
    if "\uffa0" <= character <= "\uffdc":
        _, _, code_point = unicodedata.decomposition(character).partition(" ")
        return chr(int(code_point, 16)) if code_point else character
    form = unicodedata.normalize("NFKD", character)
    return character if form == unicodedata.normalize("NFD", character) else form


def _clean_compatible(character, options, marker):
    if options["fold_width"]:
        kind, _, code_point = unicodedata.decomposition(character).partition(" ")
        character = chr(int(code_point, 16)) if kind == "<wide>" else character
    # The controls of emoji of several code points: the joiner, the tags of flags.
    joint = character == "\u200d" or "\U000e0020" <= character <= "\U000e007f"
    if options["unknown"] == "bytes" and joint:
        return character
    if options["drop_invisible"] and _in_blocks(character, INVISIBLE_BLOCKS):
        return ""
    if marker and unicodedata.normalize("NFC", character) == marker:
        return " "
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    return "" if character == "\ufffd" or category in ("Cc", "Cf", "Cs") else character


def _split(character, options):
    """Puts spaces around a character that is a word by itself."""
    alone = options["split_punctuation"] and (
        character in ASCII_PUNCTUATION or unicodedata.category(character)[0] == "P"
    )
    alone = alone or (options["split_chinese_characters"] and _in_blocks(character, CHINESE_BLOCKS))
    return f" {character} " if alone else character


def _in_blocks(character, blocks):
    return any(first <= ord(character) <= last for first, last in blocks)


def _is_repeatable(character):
    """Compatibility jamo, "^" and symbols such as emoji and hearts."""
    return (
        character == "^"
        or "\u3131" <= character <= "\u318e"
        or unicodedata.category(character) == "So"
    )


def _longest_by_first_character(pieces):
    longest: dict[str, int] = {}
    for piece in pieces:
        longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
    return longest
