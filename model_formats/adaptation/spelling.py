"""Spells one piece as each tokenizer does, whatever marks the beginning or the end of its words.

"##는" of WordPiece and "는" of SentencePiece are one piece: the text "는", inside a word.
"""

import re
from typing import NamedTuple

from tokenization import FullTokenizer, HuggingFaceTokenizer, KoreanTokenizer
from tokenization.byte_pieces import byte_of
from tokenization.decoding import UNKNOWN_TOKEN
from tokenization.loading import Tokenizer
from tokenization.sentencepiece import WORD_START, SentencePieceTokenizer

# The lines that google-research/bert reserves; no text is cut into them.
UNUSED = re.compile(r"\[unused\d+\]")


class Piece(NamedTuple):
    """A piece apart from its tokenizer."""

    text: str  # its characters
    begins: bool | None  # whether it begins a word; None if the tokenizer does not distinguish that
    ends: bool | None  # whether it ends one, likewise


class WordPieceSpelling:
    """The pieces of a tokenizer that applies WordPiece.

    `scheme` is equal for tokenizers that mean the same piece by the same token.
    """

    def __init__(self, tokenizer: FullTokenizer | KoreanTokenizer | HuggingFaceTokenizer) -> None:
        self.tokenizer = tokenizer
        self.wordpiece = tokenizer.wordpiece
        self.prefix = tokenizer.wordpiece.continuation_prefix
        self.marker = getattr(tokenizer.options, "word_end_marker", "")
        # Punctuation, symbols that only Google counts as such, Hanja.
        isolated = tuple(map(self._is_isolated, (",", "$", "\u4e2d")))
        self.scheme = (self.prefix, self.marker, *isolated)

    def read(self, token: str) -> Piece | None:
        """The `Piece` of a token; None for one that no text is cut into, or a single byte."""
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
        """The tokens that may spell a piece: several if it leaves open what they distinguish."""
        prefixes = {True: ("",), False: (self.prefix,), None: ("", self.prefix)}[piece.begins]
        if not self.prefix or self._is_isolated(piece.text):
            prefixes = ("",)
        markers = {True: (self.marker,), False: ("",), None: ("", self.marker)}[piece.ends]
        # A text without characters is the marker alone, or nothing.
        texts = [text for text in (piece.text + marker for marker in markers) if text]
        return list(dict.fromkeys(prefix + text for prefix in prefixes for text in texts))

    def cut(self, piece: Piece) -> list[str]:
        """Cuts the text of a piece, at its place in a word, into the tokenizer's own pieces.

        A piece that leaves open whether it begins a word is cut both ways, which gives the pieces
        of both; one that leaves open whether it ends a word is cut as if it did not.

        Returns:
            Tokens without [UNK]; none if the tokenizer has no others for the text.
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
        """Whether the tokenizer makes a word of the text wherever it is: "." or a Hanja."""
        return len(text) == 1 and self.tokenizer.basic_tokens(f"a{text}a") == ["a", text, "a"]


class SentencePieceSpelling:
    """The pieces of a SentencePieceTokenizer; a word is what follows a space."""

    scheme = "sentencepiece"

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        self.tokenizer = tokenizer
        self.model = tokenizer.sp_model

    def read(self, token: str) -> Piece | None:
        """The `Piece` of a token; None for one that no text is cut into, or a single byte."""
        index = self.tokenizer.vocab[token]
        if self.model.is_control(index) or self.model.is_unknown(index):
            return None
        if self.model.is_unused(index) or self.model.is_byte(index) or UNUSED.fullmatch(token):
            return None
        return Piece(token.removeprefix(WORD_START), token.startswith(WORD_START), None)

    def spell(self, piece: Piece) -> list[str]:
        """The tokens that may spell a piece: at a word's beginning, inside a word, or both."""
        starts = {True: (WORD_START,), False: ("",), None: ("", WORD_START)}[piece.begins]
        return [start + piece.text for start in starts]

    def cut(self, piece: Piece) -> list[str]:
        """Cuts the text of a piece as `WordPieceSpelling.cut` does."""
        begun = self._known(self.tokenizer.tokenize(piece.text))
        # After an unknown character, which is a piece by itself, the text continues a word.
        before = self.tokenizer.written_unknown
        pieces = self.tokenizer.tokenize(before + piece.text)
        place = next((i for i, token in enumerate(pieces) if before in token), len(pieces))
        inside = self._known(pieces[place + 1 :])
        if piece.begins is None:
            return begun + inside
        return (inside or begun) if piece.begins is False else (begun or inside)

    def _known(self, tokens):
        """The tokens without [UNK], which the library writes as the text it stands for."""
        unknown, vocab = self.tokenizer.unk_id, self.tokenizer.vocab
        known = [token for token in tokens if vocab.get(token, unknown) != unknown]
        return known if known != [WORD_START] else []


Spelling = WordPieceSpelling | SentencePieceSpelling


def _known(tokens):
    return [token for token in tokens if token != UNKNOWN_TOKEN]


def spelling_of(tokenizer: Tokenizer) -> Spelling:
    """Finds a tokenizer's spelling: a `WordPieceSpelling` or a `SentencePieceSpelling`."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        return SentencePieceSpelling(tokenizer)
    return WordPieceSpelling(tokenizer)
