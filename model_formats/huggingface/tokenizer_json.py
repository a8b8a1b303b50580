"""Describes a FullTokenizer or KoreanTokenizer as a tokenizer.json of Hugging Face `tokenizers`.

BertNormalizer and BertPreTokenizer differ from ours in rare characters (see
`tokenization.huggingface.tokenizer`), so each class of characters is written out from Python's
`unicodedata`. Characters that are unassigned there and missing from the vocabulary are replaced by
a character that no vocabulary holds, as the library knows a later Unicode version.
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

# Every supported version of Python decomposes this character, but tokenizers 0.23 does not.
COMPOSED, DECOMPOSED = "\U00011938", "\U00011935\U00011930"

# The code points that Google treats as ideographs, some of which are unassigned.
_CHINESE = {code for first, last in CHINESE_BLOCKS for code in range(first, last + 1)}

FINAL_SIGMA = "\u03c2"


def is_expressible(tokenizer: TokenizerInterface) -> bool:
    """Returns True if `describe` can reproduce a tokenizer exactly.

    The library's WordPiece cannot replace a single character by [UNK] or bytes, or a syllable by
    jamo, and has no word-end marker. A text that spells the continuation prefix would start a word
    with a continuation token, unless punctuation is split off.
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
        and options.normalization != "NFKC"  # the library's NFKC turns ㅋㅋ into conjoining jamo
        and not (options.jamo_fallback or options.word_end_marker or options.fold_width)
        and not options.shorten_runs
        and unspellable
    )


def describe(tokenizer: TokenizerInterface) -> dict[str, Any]:
    """Returns normalizer, pre-tokenizer, decoder and model of an `is_expressible` tokenizer."""
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
    """Returns the same parts for a HuggingFaceTokenizer, which uses the library itself."""
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
    """Returns the steps of a tokenizer before it splits words, in order."""
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
    """Returns a regular expression for one of `characters`, which are in ascending order."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in ranges) + "]"


@functools.cache
def _assigned() -> tuple[str, ...]:
    """Returns all characters assigned by Unicode or in Google's list, in ascending order."""
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
    """Returns the unassigned characters that are not in Google's list of ideographs."""
    every = map(chr, range(sys.maxunicode + 1))
    return tuple(c for c in every if unicodedata.category(c) == "Cn" and ord(c) not in _CHINESE)


@functools.cache
def _final_sigma() -> str:
    r"""Returns a regular expression for capital sigmas that `str.lower` turns into final ones.

    Such a sigma follows a cased letter and no cased letter follows it, skipping case-ignorable
    characters in between. \K excludes everything before it from the match.
    """
    cased = _class_of(c for c in _assigned() if f"1{c}\u03a3".lower()[-1] == FINAL_SIGMA)
    either = (c for c in _assigned() if f"A{c}\u03a3".lower()[-1] == FINAL_SIGMA)
    ignored = _class_of(c for c in either if f"1{c}\u03a3".lower()[-1] != FINAL_SIGMA)
    return rf"{cased}{ignored}*\K\x{{3A3}}(?!{ignored}*{cased})"
