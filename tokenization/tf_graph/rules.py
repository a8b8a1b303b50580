"""Defines how tokenizers treat single characters, for the tables of the graph."""

from collections.abc import Callable
from typing import NamedTuple

from tokenization import characters
from tokenization.huggingface import characters as huggingface_characters
from tokenization.normalization import STRIP_ACCENTS, korean_cleaner
from tokenization.options import KoreanTokenizerOptions


class CharacterRules(NamedTuple):
    """The functions that a tokenizer applies to single characters."""

    clean: Callable[[str], str]
    lower: Callable[[str], str]
    strip_accent: Callable[[str], str]
    is_punctuation: Callable[[str], bool]
    is_chinese: Callable[[str], bool]
    final_sigmas: bool  # whether a capital sigma at a word's end becomes the final form
    further: tuple[int, ...]  # unassigned or private code points that cleaning or casing changes


def google_rules(options: KoreanTokenizerOptions) -> CharacterRules:
    """Returns the rules of FullTokenizer and KoreanTokenizer, from `KoreanTokenizerOptions`."""
    return CharacterRules(
        clean=korean_cleaner(options.cleaning).replace,
        lower=str.lower,
        strip_accent=STRIP_ACCENTS.replace,
        is_punctuation=characters.is_punctuation,
        is_chinese=characters.is_chinese,
        final_sigmas=True,
        further=(),
    )


HUGGING_FACE_RULES = CharacterRules(
    clean=huggingface_characters.clean,
    lower=huggingface_characters.lower,
    strip_accent=huggingface_characters.strip_accent,
    is_punctuation=huggingface_characters.is_punctuation,
    is_chinese=huggingface_characters.is_chinese,
    final_sigmas=False,
    further=huggingface_characters.further(),
)
