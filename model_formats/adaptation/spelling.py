"""Translates tokens between tokenizers that mark the beginning or end of words differently.

WordPiece's "##는" and SentencePiece's "는" are the same `Piece`: the text "는" inside a word.
"""

import re
from typing import NamedTuple

from tokenization import FullTokenizer, HuggingFaceTokenizer, KoreanTokenizer
from tokenization.byte_pieces import byte_of
from tokenization.decoding import UNKNOWN_TOKEN
from tokenization.loading import Tokenizer
from tokenization.sentencepiece import WORD_START, SentencePieceTokenizer

# The vocabulary lines that google-research/bert reserves; no text produces them.
UNUSED = re.compile(r"\[unused\d+\]")


class Piece(NamedTuple):
    """A token's meaning, independent of its tokenizer."""

    text: str  # its characters
    begins: bool | None  # whether it begins a word; None if the tokenizer does not distinguish that
    ends: bool | None  # whether it ends a word; None likewise


class WordPieceSpelling:
    """Spells the tokens of a WordPiece tokenizer.

    Tokenizers for which the same token means the same `Piece` have equal `scheme`s.
    """

    def __init__(self, tokenizer: FullTokenizer | KoreanTokenizer | HuggingFaceTokenizer) -> None:
        self.tokenizer = tokenizer
        self.wordpiece = tokenizer.wordpiece
        self.prefix = tokenizer.wordpiece.continuation_prefix
        self.marker = getattr(tokenizer.options, "word_end_marker", "")
        # Punctuation, symbols that only Google counts as punctuation, Hanja.
        isolated = tuple(map(self._is_isolated, (",", "$", "\u4e2d")))
        self.scheme = (self.prefix, self.marker, *isolated)

    def read(self, token: str) -> Piece | None:
        """Returns the `Piece` of a token, or None for a single byte or if no text produces it."""
        if not token or UNUSED.fullmatch(token):
            return None
        if self.wordpiece.unknown == "bytes" and byte_of(token, self.prefix) is not None:
            return None
        text, begins, ends = token, None, None
        if self.prefix:
            begins = token == self.prefix or not token.startswith(self.prefix)
            text = token if begins else token.removeprefix(self.prefix)
        if self.marker:
            ends = text.endswith(self.marker)
            text = text.removesuffix(self.marker)
        if begins and self._is_isolated(text):
            begins = None
        return Piece(text, begins, ends)

    def spell(self, piece: Piece) -> list[str]:
        """Returns all tokens that can spell a piece, several if its place in a word is open."""
        prefixes = {True: ("",), False: (self.prefix,), None: ("", self.prefix)}[piece.begins]
        if not self.prefix or self._is_isolated(piece.text):
            prefixes = ("",)
        markers = {True: (self.marker,), False: ("",), None: ("", self.marker)}[piece.ends]
        # A piece without text is spelled by the marker alone, or not at all.
        texts = [text for text in (piece.text + marker for marker in markers) if text]
        return list(dict.fromkeys(prefix + text for prefix in prefixes for text in texts))

    def cut(self, piece: Piece) -> list[str]:
        """Tokenizes the text of a piece at its place in a word.

        If `begins` is None, the text is tokenized both ways, and the tokens of both are returned.
        If `ends` is None, the piece is treated as if it did not end a word.

        Returns:
            Tokens without [UNK]; empty if the text yields nothing else.
        """
        words = self.tokenizer.basic_tokens(piece.text)
        if words and piece.ends:
            words[-1] += self.marker
        if not words:
            return []
        first, *rest = words
        begun = _known(self.wordpiece.pieces(first))
        inside = _known(self.wordpiece.continuation_pieces(first))
        if piece.begins is None and self.prefix and not self._is_isolated(first):
            pieces = begun + inside
        else:
            pieces = (inside or begun) if piece.begins is False else (begun or inside)
        return [*pieces, *(part for word in rest for part in _known(self.wordpiece.pieces(word)))]

    def _is_isolated(self, text):
        """Returns True if the text is always a word of its own, such as "." or a Hanja."""
        return len(text) == 1 and self.tokenizer.basic_tokens(f"a{text}a") == ["a", text, "a"]


class SentencePieceSpelling:
    """Spells the tokens of a SentencePieceTokenizer, for which a space starts a word."""

    scheme = "sentencepiece"

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        self.tokenizer = tokenizer
        self.model = tokenizer.sp_model

    def read(self, token: str) -> Piece | None:
        """Returns the `Piece` of a token, or None for a single byte or if no text produces it."""
        index = self.tokenizer.vocab[token]
        if self.model.is_control(index) or self.model.is_unknown(index):
            return None
        if self.model.is_unused(index) or self.model.is_byte(index) or UNUSED.fullmatch(token):
            return None
        return Piece(token.removeprefix(WORD_START), token.startswith(WORD_START), None)

    def spell(self, piece: Piece) -> list[str]:
        """Returns the tokens that can spell a piece, at a word's beginning, inside it, or both."""
        starts = {True: (WORD_START,), False: ("",), None: ("", WORD_START)}[piece.begins]
        return [start + piece.text for start in starts]

    def cut(self, piece: Piece) -> list[str]:
        """Tokenizes the text of a piece as `WordPieceSpelling.cut` does."""
        begun = self._known(self.tokenizer.tokenize(piece.text))
        rest = self.tokenizer.encode_part(piece.text, follows_mask=True)
        inside = self._known(self.tokenizer.convert_ids_to_tokens(rest.ids))
        if piece.begins is None:
            return begun + inside
        return (inside or begun) if piece.begins is False else (begun or inside)

    def _known(self, tokens):
        """Returns the tokens without [UNK], which the library writes as the original text."""
        unknown, vocab = self.tokenizer.unk_id, self.tokenizer.vocab
        known = [token for token in tokens if vocab.get(token, unknown) != unknown]
        return known if known != [WORD_START] else []


Spelling = WordPieceSpelling | SentencePieceSpelling


def _known(tokens):
    return [token for token in tokens if token != UNKNOWN_TOKEN]


def spelling_of(tokenizer: Tokenizer) -> Spelling:
    """Returns the spelling of a tokenizer, a `WordPieceSpelling` or a `SentencePieceSpelling`."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        return SentencePieceSpelling(tokenizer)
    return WordPieceSpelling(tokenizer)
