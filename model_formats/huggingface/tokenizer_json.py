"""Describes a FullTokenizer or KoreanTokenizer as a tokenizer.json of Hugging Face `tokenizers`.

BertNormalizer and BertPreTokenizer differ from ours in rare characters, as
`tokenization.huggingface.tokenizer` says, so each class of characters is written out, from Python's
`unicodedata`. A character that is unassigned there is replaced by one that no vocabulary holds, if
the vocabulary lacks it: the library knows a later Unicode.
"""

import functools
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any

from tokenization.base import TokenizerInterface
from tokenization.characters import CHINESE_BLOCKS, is_chinese, is_invisible, is_punctuation
from tokenization.decoding import UNKNOWN_TOKEN, unknown_character
from tokenization.normalization import CLEAN
from tokenization.options import HuggingFaceTokenizerOptions, KoreanTokenizerOptions

# Which every version of Python here decomposes, and tokenizers 0.23 does not.
COMPOSED, DECOMPOSED = "\U00011938", "\U00011935\U00011930"

# Google's ideographs, of which some are unassigned.
_CHINESE = {code for first, last in CHINESE_BLOCKS for code in range(first, last + 1)}

FINAL_SIGMA = "\u03c2"


def is_expressible(tokenizer: TokenizerInterface) -> bool:
    """Whether `describe` can reproduce a tokenizer exactly.

    Its WordPiece knows no [UNK] and no bytes for a single character, no jamo for a syllable, no
    marker at a word's end. A text that spells the prefix would begin a word with a continuation
    piece, unless punctuation is split off.
    """
    if tokenizer.kind == "full":
        return True
    options = tokenizer.options
    if not isinstance(options, KoreanTokenizerOptions):
        return False
    unspellable = options.split_punctuation and all(
        map(is_punctuation, options.continuation_prefix)
    )
    return (
        options.unknown == "word"
        and options.normalization != "NFKC"  # the library's takes ㅋㅋ for conjoining jamo
        and not (options.jamo_fallback or options.word_end_marker or options.fold_width)
        and not options.shorten_runs
        and unspellable
    )


def describe(tokenizer: TokenizerInterface) -> dict[str, Any]:
    """The normalizer, the pre-tokenizer and the model of an `is_expressible` tokenizer."""
    options = tokenizer.options
    punctuation, chinese, invisible = True, True, False
    if isinstance(options, KoreanTokenizerOptions):
        punctuation, chinese = options.split_punctuation, options.split_chinese_characters
        invisible = options.drop_invisible
    prefix = tokenizer.wordpiece.continuation_prefix
    pre_tokenizers: list[dict[str, Any]] = [{"type": "WhitespaceSplit"}]
    if punctuation or chinese:
        alone = _class_of_words(punctuation, chinese)
        split = {"type": "Split", "pattern": {"Regex": alone}, "behavior": "Isolated"}
        pre_tokenizers.append(split | {"invert": False})
    return {
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(tokenizer, invisible)},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre_tokenizers},
        "decoder": {"type": "WordPiece", "prefix": prefix, "cleanup": False},
        "model": _wordpiece(prefix, tokenizer.wordpiece.max_word_characters, tokenizer.vocab),
    }


def describe_bert(options: HuggingFaceTokenizerOptions, vocab: dict[str, int]) -> dict[str, Any]:
    """The same parts for a HuggingFaceTokenizer, whose library this is."""
    prefix = options.continuing_subword_prefix
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": options.tokenize_chinese_chars,
            "strip_accents": options.strip_accents,
            "lowercase": options.do_lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": prefix, "cleanup": True},
        "model": _wordpiece(prefix, options.max_input_chars_per_word, vocab),
    }


def _wordpiece(prefix: str, longest: int, vocab: dict[str, int]) -> dict[str, Any]:
    return {
        "type": "WordPiece",
        "unk_token": UNKNOWN_TOKEN,
        "continuing_subword_prefix": prefix,
        "max_input_chars_per_word": longest,
        "vocab": vocab,
    }


def _normalizers(tokenizer: TokenizerInterface, drop_invisible: bool) -> list[dict[str, Any]]:
    """The steps of a tokenizer before it splits words, in its order."""
    form = "NFD" if tokenizer.do_lower_case else None
    if isinstance(tokenizer.options, KoreanTokenizerOptions):
        form = tokenizer.options.normalization
    used = set().union(*tokenizer.vocab)
    steps = [
        _replace(_class_of_dropped(drop_invisible), ""),
        _replace(_class_of(_spaces()), " "),
        _replace(_class_of(c for c in _unassigned() if c not in used), unknown_character(used)),
    ]
    if tokenizer.do_lower_case:
        steps += [_replace(_final_sigma(), FINAL_SIGMA), {"type": "Lowercase"}]
    if form == "NFD":
        accents = (c for c in _assigned() if unicodedata.category(c) == "Mn")
        steps += [_replace(COMPOSED, DECOMPOSED), {"type": "NFD"}, _replace(_class_of(accents), "")]
    elif form == "NFC":
        steps += [{"type": "NFC"}, _replace(DECOMPOSED, COMPOSED)]
    return steps


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _class_of(characters: Iterable[str]) -> str:
    """A regular expression for one of some characters, in ascending order."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in ranges) + "]"


@functools.cache
def _assigned() -> tuple[str, ...]:
    """The characters that have properties, by Unicode or Google's list, in ascending order."""
    every = map(chr, range(sys.maxunicode + 1))
    return tuple(
        c for c in every if unicodedata.category(c) not in ("Cn", "Co", "Cs") or ord(c) in _CHINESE
    )


@functools.cache
def _class_of_dropped(drop_invisible):
    return _class_of(
        c for c in _assigned() if CLEAN[ord(c)] == "" or (drop_invisible and is_invisible(c))
    )


@functools.cache
def _class_of_words(punctuation, chinese):
    return _class_of(
        c for c in _assigned() if (punctuation and is_punctuation(c)) or (chinese and is_chinese(c))
    )


@functools.cache
def _spaces() -> tuple[str, ...]:
    return tuple(c for c in _assigned() if c.isspace() and CLEAN[ord(c)])


@functools.cache
def _unassigned() -> tuple[str, ...]:
    """The unassigned characters, less those that Google's list of ideographs includes."""
    every = map(chr, range(sys.maxunicode + 1))
    return tuple(c for c in every if unicodedata.category(c) == "Cn" and ord(c) not in _CHINESE)


@functools.cache
def _final_sigma() -> str:
    r"""A regular expression for the capital sigma that `str.lower` makes a final one.

    It follows a letter that has case and no such letter follows it, whatever characters without
    one are between. \K leaves what is before it out of the match.
    """
    cased = _class_of(c for c in _assigned() if f"1{c}\u03a3".lower()[-1] == FINAL_SIGMA)
    either = (c for c in _assigned() if f"A{c}\u03a3".lower()[-1] == FINAL_SIGMA)
    ignored = _class_of(c for c in either if f"1{c}\u03a3".lower()[-1] != FINAL_SIGMA)
    return rf"{cased}{ignored}*\K\x{{3A3}}(?!{ignored}*{cased})"
