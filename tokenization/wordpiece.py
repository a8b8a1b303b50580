"""Implements WordPiece tokenization, equal to google-research/bert token for token."""

import unicodedata
from collections.abc import Iterable
from typing import ClassVar

from tokenization.base import EncodedPart, TokenizerInterface
from tokenization.byte_pieces import byte_of, join_bytes, spell_by_bytes
from tokenization.characters import MAX_WORD_CHARACTERS, is_syllable, jamo_of
from tokenization.decoding import UNKNOWN_TOKEN, words_by_prefix
from tokenization.normalization import SPACE_PUNCTUATION, CharacterMap
from tokenization.offsets import AlignedText, AnyText

# The distinct words in the cache, about 40 MB of memory; natural text repeats most of its words.
MAX_CACHED_WORDS = 100_000


class WordPiece:
    """Cuts single words by greedy longest match, from the left.

    Args:
        vocab: the id of each token.
        continuation_prefix: marks a token that does not begin its word.
        unknown: where no token matches, "word" turns the whole word into one [UNK], as Google does,
            and also a word of more than `max_word_characters`; "character" turns that character
            into one [UNK], continues after it, and does not limit the length of words; "bytes" does
            the same with the tokens of the character's UTF-8 bytes instead of [UNK].
        jamo_fallback: whether a Hangul syllable that no token matches becomes its two or three
            conjoining jamo.
        max_word_characters: the length of the longest word that is cut, if `unknown` is "word".

    Attributes:
        begin: maps each string that can begin a word to its token.
        inside: maps each string that can continue a word to its token.
    """

    def __init__(
        self,
        vocab: dict[str, int],
        continuation_prefix: str = "##",
        unknown: str = "word",
        jamo_fallback: bool = False,
        max_word_characters: int = MAX_WORD_CHARACTERS,
    ) -> None:
        self.continuation_prefix = prefix = continuation_prefix
        self.max_word_characters = max_word_characters
        self.unknown = unknown
        self.jamo_fallback = jamo_fallback
        self.begin: dict[str, str] = {}
        self.inside: dict[str, str] = {}
        for token in vocab:
            if token == UNKNOWN_TOKEN and unknown != "word":
                continue  # a text that spells "[UNK]" has no unknown character
            if unknown == "bytes" and byte_of(token, prefix) is not None:
                continue  # nor does a text that spells "<0xF0>" have this byte
            # A text that spells out the prefix must not match a continuation piece.
            if prefix and token.startswith(prefix) and token != prefix:
                self.inside[token[len(prefix) :]] = token
            elif token:
                self.begin[token] = token
        if not prefix:
            self.inside = self.begin
        # Candidates longer than these need no look-up.
        self._longest_begin = _longest_by_first_character(self.begin)
        self._longest_inside = _longest_by_first_character(self.inside)
        self._cache: dict[str, tuple[str, ...]] = {}

    def pieces(self, word: str) -> tuple[str, ...]:
        """Returns the word's tokens."""
        pieces = self._cache.get(word)
        if pieces is None:
            pieces = tuple(piece for piece, _, _ in self.match(word))
            if len(word) <= MAX_WORD_CHARACTERS:  # longer ones are rare and take memory
                if len(self._cache) >= MAX_CACHED_WORDS:
                    self._cache.clear()
                self._cache[word] = pieces
        return pieces

    def continuation_pieces(self, word: str) -> tuple[str, ...]:
        """Returns the tokens of the rest of a word whose beginning was cut already."""
        return tuple(piece for piece, _, _ in self.match(word, continues=True))

    def match(self, word: str, continues: bool = False) -> list[tuple[str, int, int]]:
        """Returns the tokens of a word with their positions in it, as (token, start, end).

        All jamo of a syllable and all bytes of a character have its position. If `continues`, the
        first token is a continuation too.
        """
        if self.unknown == "word" and len(word) > self.max_word_characters and not continues:
            return [(UNKNOWN_TOKEN, 0, len(word))]
        table, longest = self.begin, self._longest_begin
        if continues:
            table, longest = self.inside, self._longest_inside
        matched, start = [], 0
        while start < len(word):
            reach = longest.get(word[start], 0)
            for end in range(min(len(word), start + reach), start, -1):
                piece = table.get(word[start:end])
                if piece is not None:
                    matched.append((piece, start, end))
                    break
            else:
                end = start + 1
                if self.jamo_fallback and is_syllable(word[start]):
                    first, *rest = jamo_of(word[start])
                    matched.append((table[first], start, end))
                    matched += [(self.inside[jamo], start, end) for jamo in rest]
                elif self.unknown == "bytes":
                    pieces = self.bytes_of(word[start], continues or start > 0)
                    matched += [(piece, start, end) for piece in pieces]
                elif self.unknown == "word":
                    return [(UNKNOWN_TOKEN, 0, len(word))]
                else:
                    matched.append((UNKNOWN_TOKEN, start, end))
            start, table, longest = end, self.inside, self._longest_inside
        return matched

    def bytes_of(self, character: str, inside: bool) -> list[str]:
        """Returns the tokens of a character's bytes, at the beginning of a word or inside one."""
        # A vocabulary need not hold ASCII bytes with the prefix.
        marked = inside and character > "\x7f"
        return spell_by_bytes(character, self.continuation_prefix if marked else "")

    def join_bytes(self, tokens: list[str]) -> list[str]:
        """Replaces the bytes of each character by the character, if `unknown` is "bytes"."""
        if self.unknown != "bytes":
            return tokens
        return join_bytes(tokens, self.continuation_prefix, self.begin)


def _longest_by_first_character(pieces: Iterable[str]) -> dict[str, int]:
    longest: dict[str, int] = {}
    for piece in pieces:
        longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
    return longest


class WordTokenizer(TokenizerInterface):
    """A tokenizer that normalizes a text, splits it into words, then applies WordPiece.

    Attributes:
        space_punctuation: the table that puts spaces around punctuation marks.
    """

    space_punctuation: ClassVar[CharacterMap] = SPACE_PUNCTUATION

    def _normalize(self, text: AnyText) -> AnyText:
        """Returns the normalized text, without the spaces that `space_punctuation` adds."""
        raise NotImplementedError

    def basic_tokens(self, text: str) -> list[str]:
        """Splits a text into words; punctuation marks and, by default, Hanja are separate words."""
        return self._normalize(text).translate(self.space_punctuation).split()

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into tokens, grouped by word (basic token)."""
        return [list(self.wordpiece.pieces(token)) for token in self.basic_tokens(text)]

    def encode_part(
        self, text: str, follows_mask: bool = False, precedes_mask: bool = False
    ) -> EncodedPart:
        """Encodes a part of a text; an [UNK] has the span of its word."""
        aligned = self._normalize(AlignedText(text)).translate(self.space_punctuation)
        edges = aligned.edges()
        continues = follows_mask and edges[0] not in ("", " ")
        return EncodedPart(*self._cut_words(aligned.split(), continues), edges)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns a text that `encode` turns into the same ids, its words separated by spaces.

        An [UNK] is written as one character that the vocabulary lacks.
        """
        tokens = self.convert_ids_to_tokens(ids)
        text = " ".join(words_by_prefix(self.wordpiece, self.written_unknown, tokens))
        # Composes the syllables that were decomposed.
        return unicodedata.normalize("NFC", text) if self.decomposes else text
