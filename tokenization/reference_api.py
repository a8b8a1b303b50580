"""Provides the names of tokenization.py in google-research/bert and google-research/albert.

Code that was written for either module keeps working with `import tokenization`. Where the two
differ, this follows google-research/bert (in how `load_vocab` reads odd lines, for example), and
ALBERT's additional arguments and functions work too. New code needs only `FullTokenizer` from here.
"""

import functools
import os
import re
import unicodedata
import warnings
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from typing import Any, Self, TypeVar

from bert_common.errors import InputError
from tokenization.characters import MAX_WORD_CHARACTERS, is_chinese
from tokenization.decoding import UNKNOWN_TOKEN
from tokenization.normalization import (
    CLEAN,
    CLEAN_AND_SPACE_CHINESE,
    ISOLATING,
    SPACE_PUNCTUATION,
    STRIP_ACCENTS,
)
from tokenization.offsets import AnyText, normalize
from tokenization.options import FullTokenizerOptions
from tokenization.sentencepiece import (
    WORD_START,
    SentencePieceTokenizer,
    preprocess_text,
    split_numbers,
)
from tokenization.vocabulary import count_hangul_entries, load_vocabulary
from tokenization.wordpiece import WordPiece, WordTokenizer

__all__ = [
    "SPIECE_UNDERLINE",
    "BasicTokenizer",
    "FullTokenizer",
    "WordpieceTokenizer",
    "convert_by_vocab",
    "convert_ids_to_tokens",
    "convert_to_unicode",
    "convert_tokens_to_ids",
    "encode_ids",
    "encode_pieces",
    "load_vocab",
    "preprocess_text",
    "printable_text",
    "validate_case_matches_checkpoint",
    "whitespace_tokenize",
]

SPIECE_UNDERLINE = WORD_START.encode()

K = TypeVar("K")
V = TypeVar("V")

# The letter case of Google's published checkpoints, by folder.
LOWER_CASE_MODELS = (
    "uncased_L-24_H-1024_A-16", "uncased_L-12_H-768_A-12",
    "multilingual_L-12_H-768_A-12", "chinese_L-12_H-768_A-12",
)  # fmt: skip
CASED_MODELS = ("cased_L-12_H-768_A-12", "cased_L-24_H-1024_A-16", "multi_cased_L-12_H-768_A-12")


class FullTokenizer(WordTokenizer):
    """google-research/bert's tokenizer, with the constructors and attributes of both modules.

    It cleans text, splits it, lower-cases it and strips accents, then applies WordPiece.
    Lower-casing decomposes text (NFD), which turns Hangul into conjoining jamo and so suits only a
    vocabulary of jamo. Without it, text is not normalized at all. Lone surrogates are dropped.

    Args:
        vocab_file: one token a line, read with Google's quirks (`load_vocabulary`).
        do_lower_case: lower-case, decompose, drop accents; False keeps the text as it is.
        spm_model_file: ALBERT's SentencePiece model, in place of `vocab_file`. The result is then a
            `SentencePieceTokenizer` that, as in ALBERT, leaves the letter case to
            `preprocess_text`.

    Raises:
        InputError: the file is missing, empty or malformed.
    """

    kind = "full"
    options_type = FullTokenizerOptions
    options: FullTokenizerOptions

    def __new__(
        cls,
        vocab_file: str | os.PathLike[str] | None = None,
        do_lower_case: bool = True,
        spm_model_file: str | os.PathLike[str] | None = None,
        *more: Any,  # a subclass's constructor may have other arguments; `__init__` refuses them
        **named: Any,
    ) -> Any:
        if spm_model_file and cls is FullTokenizer and not (more or named):
            return SentencePieceTokenizer(spm_model_file, do_lower_case=None)
        return super().__new__(cls)

    def __init__(
        self,
        vocab_file: str | os.PathLike[str],
        do_lower_case: bool = True,
        spm_model_file: str | os.PathLike[str] | None = None,
    ) -> None:
        if spm_model_file:
            raise InputError(
                "a subclass of FullTokenizer must be given a vocab_file: spm_model_file makes a "
                f"SentencePieceTokenizer. Received: {os.fspath(spm_model_file)}"
            )
        self.options = FullTokenizerOptions(do_lower_case)
        self.decomposes = do_lower_case
        vocab, vocabulary_bytes = load_vocabulary(vocab_file)
        self._use_vocabulary(vocab, vocabulary_bytes)
        self.wordpiece = WordPiece(vocab)
        syllables, jamo = count_hangul_entries(vocab)
        # Below a tenth, jamo entries cannot be the vocabulary's spelling of Korean.
        if do_lower_case and 10 * jamo < syllables:
            warnings.warn(
                f"{os.fspath(vocab_file)} holds {syllables} tokens with Hangul syllables, {jamo} "
                "with conjoining jamo: lower-casing here decomposes Hangul, so nearly all Korean "
                "will become [UNK] or single jamo. Use KoreanTokenizer (--tokenizer=korean) or "
                "do_lower_case=False",
                stacklevel=2,
            )

    @classmethod
    def from_scratch(
        cls,
        vocab_file: str | os.PathLike[str],
        do_lower_case: bool,
        spm_model_file: str | os.PathLike[str] | None,
    ) -> Self:
        """Creates a tokenizer; this is ALBERT's other name for the constructor."""
        return cls(vocab_file, do_lower_case, spm_model_file)

    @classmethod
    def from_hub_module(cls, hub_module: str | os.PathLike[str], use_spm: bool = True) -> Self:
        """Creates the tokenizer that a TensorFlow Hub module was trained with.

        Args:
            hub_module: the folder of the unpacked module.
            use_spm: whether its vocabulary is a SentencePiece model.

        Raises:
            InputError: there is no such folder, or it holds no module with a vocabulary.
        """
        file, lower = _read_hub_module(hub_module)
        return cls(*(None, lower, file) if use_spm else (file, lower))

    sp_model = None  # a SentencePieceTokenizer has one
    _unknown_becomes_id = None  # for a subclass whose constructor sets all attributes itself

    # Kept from the first access, as a caller may change or replace it.
    @functools.cached_property
    def basic_tokenizer(self) -> "BasicTokenizer":
        """First half; `tokenize` and `encode` use it, or its replacement, once it was accessed."""
        return BasicTokenizer(self.options.do_lower_case)

    @functools.cached_property
    def wordpiece_tokenizer(self) -> "WordpieceTokenizer":
        """Second half, likewise."""
        return WordpieceTokenizer(self.vocab)

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into tokens, grouped by word (basic token)."""
        text = convert_to_unicode(text)
        if {"basic_tokenizer", "wordpiece_tokenizer"}.isdisjoint(vars(self)):
            return super().tokenize_words(text)  # the same, and four times as fast
        words = self.basic_tokenizer.tokenize(text)
        return [self.wordpiece_tokenizer.tokenize(word) for word in words]

    def _normalize(self, text: AnyText) -> AnyText:
        text = text.translate(CLEAN_AND_SPACE_CHINESE)
        if self.decomposes:
            # After lower(), which turns a Turkish İ into i and a dot that is dropped with accents.
            text = normalize("NFD", text.lower()).translate(STRIP_ACCENTS)
        return text


class BasicTokenizer:
    """Cleans text and splits it into words, punctuation marks and ideographs.

    A subclass may override a step, as many do to keep accents.

    Args:
        do_lower_case: lower-case, decompose, drop accents.
    """

    def __init__(self, do_lower_case: bool = True) -> None:
        self.do_lower_case = do_lower_case

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the words of a text, which may be UTF-8 bytes."""
        text = self._tokenize_chinese_chars(self._clean_text(convert_to_unicode(text)))
        words = []
        for word in whitespace_tokenize(text):
            if self.do_lower_case:
                word = self._run_strip_accents(word.lower())
            words += self._run_split_on_punc(word)
        return whitespace_tokenize(" ".join(words))

    def _clean_text(self, text):
        return text.translate(CLEAN)

    def _tokenize_chinese_chars(self, text):
        own = getattr(self._is_chinese_char, "__func__", None)
        if own is BasicTokenizer._is_chinese_char:
            return text.translate(ISOLATING[False, True])
        return "".join(f" {each} " if self._is_chinese_char(ord(each)) else each for each in text)

    def _is_chinese_char(self, cp):
        return is_chinese(chr(cp))

    def _run_strip_accents(self, text):
        return unicodedata.normalize("NFD", text).translate(STRIP_ACCENTS)

    def _run_split_on_punc(self, text):
        return text.translate(SPACE_PUNCTUATION).split()


class WordpieceTokenizer:
    """Cuts words into the longest tokens that the vocabulary holds, from the left.

    Args:
        vocab: a container of tokens.
        unk_token: replaces a word that cannot be cut.
        max_input_chars_per_word: a longer word is replaced by `unk_token`.
    """

    def __init__(
        self,
        vocab: Container[str],
        unk_token: str = UNKNOWN_TOKEN,
        max_input_chars_per_word: int = MAX_WORD_CHARACTERS,
    ) -> None:
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of a text's words, which are separated by whitespace."""
        return [
            piece
            for word in whitespace_tokenize(convert_to_unicode(text))
            for piece in self._pieces(word)
        ]

    def _pieces(self, word):
        if len(word) > self.max_input_chars_per_word:
            return [self.unk_token]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                if prefix + word[start:end] in self.vocab:
                    break
            else:
                return [self.unk_token]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces


def validate_case_matches_checkpoint(do_lower_case: bool, init_checkpoint: str | None) -> None:
    """Checks the letter case against the name of a published checkpoint's folder.

    Raises:
        InputError (a ValueError, as Google raises): the checkpoint was trained with the other case.
    """
    match = re.match("^.*?([A-Za-z0-9_-]+)/bert_model.ckpt", init_checkpoint or "")
    if not match:
        return
    mismatched = LOWER_CASE_MODELS if not do_lower_case else CASED_MODELS
    if match[1] in mismatched:
        raise InputError(
            f"--do_lower_case must be {not do_lower_case} for {match[1]}, which was pre-trained "
            f"that way. Received: {do_lower_case} for {init_checkpoint}"
        )


def convert_to_unicode(text: str | bytes) -> str:
    """Returns text as `str`; bytes are read as UTF-8, invalid ones are dropped."""
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"Text must be str or bytes. Received: {type(text).__name__}")


# On Python 3 the two functions do the same.
printable_text = convert_to_unicode


def load_vocab(vocab_file: str | os.PathLike[str]) -> OrderedDict[str, int]:
    """Returns the id of each token of a vocabulary file, in the file's order."""
    vocab, _ = load_vocabulary(vocab_file)
    return OrderedDict(vocab)


def convert_by_vocab(vocab: Mapping[K, V], items: Iterable[K]) -> list[V]:
    """Returns the value in `vocab` of each item; raises KeyError for an item that it lacks."""
    return [vocab[item] for item in items]


def convert_tokens_to_ids(vocab: Mapping[str, int], tokens: Iterable[str]) -> list[int]:
    """Returns the id of each token."""
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab: Mapping[int, str], ids: Iterable[int]) -> list[str]:
    """Returns the token of each id."""
    return convert_by_vocab(inv_vocab, ids)


def whitespace_tokenize(text: str) -> list[str]:
    """Splits a text at whitespace."""
    return text.split()


def encode_pieces(
    sp_model: Any, text: str, return_unicode: bool = True, sample: bool = False
) -> list[str]:
    """Cuts a text with a SentencePieceProcessor, and numbers before a comma like other numbers.

    Args:
        sp_model: the SentencePieceProcessor.
        text: the result of `preprocess_text`.
        return_unicode: has no effect on Python 3.
        sample: whether to draw one of the 64 best segmentations.
    """
    if sample:
        pieces = sp_model.SampleEncodeAsPieces(text, 64, 0.1)
    else:
        pieces = sp_model.EncodeAsPieces(text)
    return split_numbers(sp_model, pieces)


def encode_ids(sp_model: Any, text: str, sample: bool = False) -> list[int]:
    """Returns the ids of the tokens of `encode_pieces`."""
    return [sp_model.PieceToId(piece) for piece in encode_pieces(sp_model, text, sample=sample)]


def _read_hub_module(folder):
    """Returns the vocabulary file and the letter case of an unpacked TensorFlow Hub module."""
    import tensorflow as tf  # here: everything else works without it

    try:
        os.listdir(folder)  # TensorFlow would raise a different error for a URL
        info = tf.saved_model.load(folder, tags=[]).signatures["tokenization_info"]()
        return info["vocab_file"].numpy().decode(), bool(info["do_lower_case"].numpy())
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise InputError(
            "a hub module must be the folder of an unpacked one that has the signature "
            f"tokenization_info (FullTokenizer takes its vocabulary file too). Received: {folder} "
            f"({str(error).splitlines()[0][:200]})"
        ) from None
