"""WordPiece tokenization, equal to Hugging Face's BertTokenizer id for id."""

import os
import unicodedata
from collections.abc import Iterable
from typing import Any

from bert_common.errors import InputError
from tokenization.base import EncodedPart, TokenizerInterface
from tokenization.decoding import unknown_character, words_by_prefix
from tokenization.huggingface.characters import (
    CLEAN,
    CLEAN_AND_SPACE_CHINESE,
    LOWER,
    SPACE_PUNCTUATION,
    STRIP_ACCENTS,
    is_punctuation,
)
from tokenization.offsets import AlignedText
from tokenization.options import HuggingFaceTokenizerOptions
from tokenization.vocabulary import load_vocabulary
from tokenization.wordpiece import WordPiece

# What `decode` may write for [UNK]: symbols that no step drops, splits off or decomposes.
UNKNOWN_CANDIDATES = tuple(
    character
    for character in ("\u22a0", "\u22a1", *map(chr, range(0x2200, 0x2300)))
    if not unicodedata.decomposition(character)
)


class HuggingFaceTokenizer(TokenizerInterface):
    """Cleans, splits, lower-cases and strips accents as BertTokenizer of `transformers` does.

    It differs from FullTokenizer in rare cases (words of over 100 characters, private use
    characters, a final capital sigma, Unicode's version) and has a switch of its own for accents.
    A text that spells "[MASK]" has no special token, as with split_special_tokens=True there.

    Args:
        vocab_file: one token a line.
        **options: the fields of `HuggingFaceTokenizerOptions`.

    Raises:
        InputError: the vocabulary cannot be read or lacks [UNK], or an option is invalid.

    Source: BertNormalizer, BertPreTokenizer and WordPiece of tokenizers 0.23.3, `characters.py`.
    """

    # Where accents are stripped, U+11938 is decomposed here and not by tokenizers.

    kind = "huggingface"
    options_type = HuggingFaceTokenizerOptions
    options: HuggingFaceTokenizerOptions

    def __init__(self, vocab_file: str | os.PathLike[str], **options: Any) -> None:
        self.options = options = HuggingFaceTokenizerOptions(**options)
        vocab, vocabulary_bytes = load_vocabulary(vocab_file)
        self._use_vocabulary(vocab, vocabulary_bytes)
        if self.unk_id is None:
            raise InputError(
                f"a vocabulary must hold [UNK]. Received: {os.fspath(vocab_file)} without it"
            )
        prefix = options.continuing_subword_prefix
        if not all(map(is_punctuation, prefix)):
            raise InputError(
                "continuing_subword_prefix must consist of punctuation marks, which no word "
                f"contains. Received: {prefix!r}"
            )
        self.wordpiece = WordPiece(
            vocab, prefix, max_word_characters=options.max_input_chars_per_word
        )

    def basic_tokens(self, text: str) -> list[str]:
        """Splits a text into words; each punctuation mark is a separate word."""
        options = self.options
        text = text.translate(CLEAN_AND_SPACE_CHINESE if options.tokenize_chinese_chars else CLEAN)
        if options.do_lower_case:
            text = text.translate(LOWER)
        if options.strip_accents:
            text = unicodedata.normalize("NFD", text).translate(STRIP_ACCENTS)
        return text.translate(SPACE_PUNCTUATION).split()

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into tokens, grouped by word (basic token)."""
        return [list(self.wordpiece.pieces(token)) for token in self.basic_tokens(text)]

    def encode_part(
        self, text: str, follows_mask: bool = False, precedes_mask: bool = False
    ) -> EncodedPart:
        """As `TokenizerInterface.encode_part`; an [UNK] has the span of its word."""
        options, aligned = self.options, AlignedText(text)
        aligned = aligned.translate(
            CLEAN_AND_SPACE_CHINESE if options.tokenize_chinese_chars else CLEAN
        )
        if options.do_lower_case:
            aligned = aligned.translate(LOWER)
        if options.strip_accents:
            aligned = aligned.normalize("NFD").translate(STRIP_ACCENTS)
        edges = aligned.edges()
        words = aligned.translate(SPACE_PUNCTUATION).split()
        continues = follows_mask and edges[0] not in ("", " ")
        return EncodedPart(*self._cut_words(words, continues), edges)

    @property
    def written_unknown(self) -> str:
        """The symbol that `decode` writes for [UNK]; no token contains it."""
        if self._written_unknown is None:
            self._written_unknown = unknown_character(self.vocab, UNKNOWN_CANDIDATES)
        return self._written_unknown

    def decode(self, ids: Iterable[int]) -> str:
        """Returns a text that `encode` turns into the same ids, its words separated by spaces.

        An [UNK] is written as one symbol that the vocabulary lacks.
        """
        tokens = self.convert_ids_to_tokens(ids)
        text = " ".join(words_by_prefix(self.wordpiece, self.written_unknown, tokens))
        # Composes the syllables that stripping accents decomposed.
        return unicodedata.normalize("NFC", text) if self.options.strip_accents else text
