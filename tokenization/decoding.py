"""Turns tokens back into words that would be cut into the same tokens."""

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # they import this module
    from tokenization.korean import KoreanTokenizer
    from tokenization.wordpiece import WordPiece

UNKNOWN_TOKEN = "[UNK]"

# The characters that may be written for [UNK], in order of choice. Every vocabulary leaves one of
# them free, because the private use areas have more characters than any vocabulary has tokens.
UNKNOWN_WORD = (*"\u22a0\u22a1", *map(chr, (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))))
UNKNOWN_PUNCTUATION = "\u2042\u2051\u203b\u2020\u2021\u2058\u2059\u205a\u205c\u205e"
UNKNOWN_CHINESE = tuple(map(chr, range(0x9FA5, 0x4DFF, -1)))


def unknown_character(tokens: Iterable[str], candidates: Iterable[str] = UNKNOWN_WORD) -> str:
    """Returns the character to write for [UNK]: the first candidate that no token contains.

    No default candidate is a letter, a punctuation mark, or a character that normalization changes.
    """
    used = set().union(*tokens)
    return next(character for character in candidates if character not in used)


def words_by_prefix(
    wordpiece: "WordPiece", unknown: str, tokens: list[str], marker: str = ""
) -> list[str]:
    """Joins tokens into words as WordPiece received them, including markers at their ends.

    A word begins at each token without the prefix. An [UNK] is written as `unknown`. If it stands
    for a character, it is joined to the word before it, whose tokens are the same either way,
    unless that word ends with its marker.
    """
    prefix = wordpiece.continuation_prefix
    words: list[list[str]] = []
    for token in tokens:
        text, continues = token, False
        if token == UNKNOWN_TOKEN:
            text, continues = unknown, wordpiece.unknown != "word"
            if marker and words and words[-1][-1].endswith(marker):
                continues = words[-1] == [marker]  # from the text: no word is only its marker
        elif prefix and token != prefix and token.startswith(prefix):
            text, continues = token[len(prefix) :], True
        if continues and words:
            if wordpiece.unknown == "word" and words[-1] == [unknown]:
                words[-1] = [UNKNOWN_TOKEN]  # it continues, so the text spelled "[UNK]"
            words[-1].append(text)
        else:
            words.append([text])
    return ["".join(word) for word in words]


def words_by_marker(tokenizer: "KoreanTokenizer", tokens: list[str]) -> list[str]:
    """Joins tokens that have no prefix into words, without their markers.

    A text may contain the marker itself, so a word ends only where cutting it again gives the same
    tokens; the nearest such end is tried first.
    """
    texts = [tokenizer.written_unknown if token == UNKNOWN_TOKEN else token for token in tokens]
    dead_ends = set()  # places from which the rest cannot be split into words
    words: list[str] = []
    ends = [0]  # where the words end, after the beginning of the first
    while ends[-1] < len(tokens):
        for end in range(ends[-1] + 1, len(tokens) + 1):
            word = None
            if end not in dead_ends:
                word = _read_word(tokenizer, tokens, texts, ends[-1], end)
            if word is not None:
                words.append(word)
                ends.append(end)
                break
        else:
            if not words:  # no text has these tokens
                return "".join(texts).split(tokenizer.options.word_end_marker)
            words.pop()
            dead_ends.add(ends.pop())
    return words


def _read_word(tokenizer, tokens, texts, start, end):
    """Returns the word that is cut into tokens[start:end], or None; `texts` have [UNK] written."""
    word = _join_word(tokenizer, tokens, texts[start:end], start, end)
    if word is None:  # the text may also spell out "[UNK]"
        word = _join_word(tokenizer, tokens, tokens[start:end], start, end)
    return word


def _join_word(tokenizer, tokens, parts, start, end):
    """Joins parts, the tokens as they may be in the text, to a word; returns None if it is none."""
    options, wordpiece = tokenizer.options, tokenizer.wordpiece
    marker = options.word_end_marker
    unmarked_end = end == len(tokens) or tokens[end - 1] == UNKNOWN_TOKEN
    if not unmarked_end and parts[-1][-1] != marker[-1]:
        return None  # as in most places; faster than joining
    raw = "".join(parts)
    whole = raw == tokenizer.written_unknown and wordpiece.unknown == "word"
    marked = (options.mark_final_word or end < len(tokens)) and not whole
    if marked and not raw.endswith(marker):
        return None
    if options.normalization:  # composes jamo of the fallback
        raw = unicodedata.normalize("NFC", raw)
    word = raw.removesuffix(marker) if marked else raw
    same = wordpiece.join_bytes(list(wordpiece.pieces(raw))) == tokens[start:end]
    return word if same and tokenizer.basic_tokens(word) == [word] else None
