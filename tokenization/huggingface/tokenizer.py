"""Implements WordPiece tokenization, equal to Hugging Face's BertTokenizer id for id."""

import os
import unicodedata
from typing import Any

from bert_common.errors import InputError
from tokenization.huggingface.characters import (
    CLEAN,
    CLEAN_AND_SPACE_CHINESE,
    LOWER,
    SPACE_PUNCTUATION,
    STRIP_ACCENTS,
    is_punctuation,
)
from tokenization.offsets import AnyText, normalize
from tokenization.options import HuggingFaceTokenizerOptions
from tokenization.vocabulary import load_vocabulary
from tokenization.wordpiece import WordPiece, WordTokenizer


class HuggingFaceTokenizer(WordTokenizer):
    """Cleans, splits, lower-cases and strips accents as BertTokenizer of `transformers` does.

    It differs from FullTokenizer in rare cases (words of over 100 characters, private use
    characters, a final capital sigma, Unicode's version) and has a separate option for accents. A
    text that spells "[MASK]" gets no special token, as with split_special_tokens=True there.

    Args:
        vocab_file: one token a line.
        **options: the fields of `HuggingFaceTokenizerOptions`.

    Raises:
        InputError: the vocabulary cannot be read or lacks [UNK], or an option is invalid.

    Source: BertNormalizer, BertPreTokenizer and WordPiece of tokenizers 0.23.3, `characters.py`.
    """

    # If accents are stripped, U+11938 is decomposed here but not by tokenizers.

    kind = "huggingface"
    options_type = HuggingFaceTokenizerOptions
    options: HuggingFaceTokenizerOptions
    # Symbols that no step drops, splits off or decomposes.
    unknown_candidates = tuple(
        character
        for character in ("\u22a0", "\u22a1", *map(chr, range(0x2200, 0x2300)))
        if not unicodedata.decomposition(character)
    )
    space_punctuation = SPACE_PUNCTUATION

    def __init__(self, vocab_file: str | os.PathLike[str], **options: Any) -> None:
        self.options = options = HuggingFaceTokenizerOptions(**options)
        self.decomposes = options.strip_accents
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

    def _normalize(self, text: AnyText) -> AnyText:
        options = self.options
        text = text.translate(CLEAN_AND_SPACE_CHINESE if options.tokenize_chinese_chars else CLEAN)
        if options.do_lower_case:
            text = text.translate(LOWER)
        if options.strip_accents:
            text = normalize("NFD", text).translate(STRIP_ACCENTS)
        return text
