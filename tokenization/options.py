"""Declares the options of every tokenizer, with their defaults and allowed values."""

import dataclasses
import json
import re
import typing
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

from bert_common.errors import InputError
from tokenization.normalization import Cleaning

# The largest repetition count of a regular expression.
LARGEST_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class FullTokenizerOptions:
    """The options of FullTokenizer."""

    # Lower-case, decompose (NFD), drop accents; False keeps the text as it is.
    do_lower_case: bool = True

    def __post_init__(self) -> None:
        check_options(type(self), vars(self), "FullTokenizer")


@dataclasses.dataclass(frozen=True)
class KoreanTokenizerOptions:
    """The options of KoreanTokenizer; each works without the others, except where noted.

    Attributes:
        do_lower_case: lower-case Latin and other cased scripts.
        normalization: "NFC"; "NFKC", which also replaces full-width letters and digits, circled
            numbers, ligatures and the like by the usual characters, but leaves compatibility jamo
            (ㅋㅋ, ㅠㅠ) alone; None to leave the text as it is.
        continuation_prefix: marks a token that does not begin its word; "" for none.
        word_end_marker: appended to each word before WordPiece, such as "_"; "" for none.
        word_end_marker_at: "word" marks every word; "eojeol" only words before whitespace, so
            that the tokens determine all spaces. That needs unknown="character" or "bytes", and a
            marker in the text is then read as a space.
        mark_final_word: False leaves the text's last word without `word_end_marker`.
        split_punctuation: make each punctuation mark a separate word; False also lets a text
            that spells "[MASK]" produce that special token.
        split_chinese_characters: make each Hanja a separate word.
        unknown: "word" turns a word into one [UNK] if any part of it has no token, or if it is
            longer than 200 characters, as google-research/bert does. "character" turns only the
            character at which greedy longest match finds no token into [UNK], and continues after
            it; words may have any length. "bytes" is like "character", but instead of [UNK] the
            character becomes the tokens of its UTF-8 bytes (`byte_pieces`), all of which the
            vocabulary must hold; so nothing is [UNK], and the joiners and tags inside emoji are
            kept. With "character" or "bytes", a `word_end_marker` must be a single character that
            the vocabulary also holds as a continuation token.
        jamo_fallback: a syllable at which no token matches becomes its two or three conjoining
            jamo (initial, vowel, final), each a token. Finals have separate code points, so
            composing (NFC) restores exactly the original syllables. The vocabulary must hold all
            of these jamo, and `normalization` must not be None.
        fold_width: replace full-width forms by the usual ones ("Ａ" by "A", "￦" by "₩");
            compatibility jamo and half-width forms stay.
        drop_invisible: drop invisible characters that are not control characters: Hangul fillers,
            variation selectors.
        shorten_runs: the length to which runs of the same compatibility jamo, symbol (emoji,
            hearts, stars) or "^" are cut; 0 keeps them.
        strict_vocabulary: refuse a vocabulary that has blank or repeated lines or lacks a special
            token. False reads it as google-research/bert does, and gives the id of [UNK] to
            tokens outside the vocabulary.

    Raises:
        InputError: an option has an invalid value, or one that contradicts another option.
    """

    do_lower_case: bool = False
    normalization: Literal["NFC", "NFKC", None] = "NFC"
    continuation_prefix: str = "##"
    word_end_marker: str = ""
    word_end_marker_at: Literal["word", "eojeol"] = "word"
    mark_final_word: bool = True
    split_punctuation: bool = True
    split_chinese_characters: bool = True
    unknown: Literal["word", "character", "bytes"] = "word"
    jamo_fallback: bool = False
    fold_width: bool = False
    drop_invisible: bool = False
    shorten_runs: int = 0
    strict_vocabulary: bool = True

    def __post_init__(self) -> None:
        check_options(type(self), vars(self), "KoreanTokenizer")
        marker = self.word_end_marker
        if self.word_end_marker_at == "eojeol" and not (marker and self.unknown != "word"):
            raise InputError(
                'KoreanTokenizer: word_end_marker_at "eojeol" requires a word_end_marker and '
                f'unknown "character" or "bytes". Received: {marker!r}, {self.unknown!r}'
            )
        if marker and self.unknown != "word":
            if len(marker) != 1 or unicodedata.category(marker)[0] not in "PS":
                raise InputError(
                    f'KoreanTokenizer: with unknown "{self.unknown}", word_end_marker must be one '
                    f"punctuation mark or symbol. Received: {marker!r}"
                )
            if unicodedata.decomposition(marker):
                raise InputError(
                    "KoreanTokenizer: word_end_marker must be a character that does not "
                    f"decompose. Received: {marker!r}"
                )
        if self.jamo_fallback and self.normalization is None:
            raise InputError(
                'KoreanTokenizer: jamo_fallback requires normalization "NFC" or "NFKC". '
                f"Received: {self.normalization!r}"
            )

    @property
    def marks_eojeols(self) -> bool:
        """Whether the word-end marker represents whitespace."""
        return self.word_end_marker_at == "eojeol"

    @property
    def composition(self) -> Literal["NFC"] | None:
        """The normalization form applied after cleaning, which does the rest of NFKC."""
        return "NFC" if self.normalization else None

    @property
    def cleaning(self) -> Cleaning:
        """The argument of `normalization.korean_cleaner`."""
        return Cleaning(
            compatible=self.normalization == "NFKC",
            fold=self.fold_width,
            drop_invisible=self.drop_invisible,
            keep_joints=self.unknown == "bytes",
            marker=self.word_end_marker if self.marks_eojeols else "",
        )


@dataclasses.dataclass(frozen=True)
class HuggingFaceTokenizerOptions:
    """The options of HuggingFaceTokenizer, by the names that `transformers` gives them."""

    # Lower-case each character by itself.
    do_lower_case: bool = True
    # Decompose (NFD) and drop accents; for None in `transformers`, give do_lower_case's value.
    strip_accents: bool = True
    # Make each Hanja a separate word.
    tokenize_chinese_chars: bool = True
    # A longer word is one [UNK].
    max_input_chars_per_word: int = 100
    # Marks a token that does not begin its word; "" for none.
    continuing_subword_prefix: str = "##"

    def __post_init__(self) -> None:
        check_options(type(self), vars(self), "HuggingFaceTokenizer")


@dataclasses.dataclass(frozen=True)
class SentencePieceTokenizerOptions:
    """The options of SentencePieceTokenizer."""

    # Lower-case during preprocessing; None skips preprocessing altogether.
    do_lower_case: Literal[True, False, None] = True
    # "huggingface" begins with the steps that AlbertTokenizer of `transformers` 4 adds to Google's:
    # `` and '' become ", and each character is lower-cased by itself, sigmas included.
    variant: Literal["google", "huggingface"] = "google"

    def __post_init__(self) -> None:
        check_options(type(self), vars(self), "SentencePieceTokenizer")


Options = (
    FullTokenizerOptions
    | KoreanTokenizerOptions
    | HuggingFaceTokenizerOptions
    | SentencePieceTokenizerOptions
)


def check_options(options_type: type, values: Mapping[str, Any], where: str) -> None:
    """Checks the names and values of a tokenizer's options against the types that it declares.

    Args:
        options_type: a dataclass, whose fields are bool, a `Literal`, str (any string that UTF-8
            can encode) or int (any count that regular expressions accept).
        values: the value of each option by name; options may be left out.
        where: the source of the values, for the message.
    """
    types = typing.get_type_hints(options_type)
    for name, value in values.items():
        if name not in types:
            raise InputError(
                f"{where}: an option must be one of {', '.join(sorted(types))}. Received: {name!r}"
            )
        if types[name] is str:
            # A lone surrogate in JSON has become U+FFFD, which cleaned text never contains.
            valid = isinstance(value, str) and not re.search("[\ud800-\udfff\ufffd]", value)
            must = "a string without lone surrogates and U+FFFD"
        elif types[name] is int:
            valid = type(value) is int and 0 <= value <= LARGEST_COUNT
            must = f"a whole number from 0 to {LARGEST_COUNT}"
        else:
            choices = (True, False) if types[name] is bool else typing.get_args(types[name])
            # Types are compared too, since 1 == True.
            valid = any(type(value) is type(choice) and value == choice for choice in choices)
            must = "one of " + ", ".join(map(json.dumps, choices))
        if not valid:
            raise InputError(f"{where}: {name} must be {must}. Received: {value!r}")
