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
    marker, mark_final = tokenizer.options.word_end_marker, tokenizer.options.mark_final_word
    texts = [tokenizer.written_unknown if token == UNKNOWN_TOKEN else token for token in tokens]

    def read_word(start, end):
        # The text may also spell out "[UNK]".
        word = join(texts, start, end)
        return join(tokens, start, end) if word is None else word

    def join(texts, start, end):
        unmarked_end = end == len(tokens) or tokens[end - 1] == UNKNOWN_TOKEN
        if not unmarked_end and texts[end - 1][-1] != marker[-1]:
            return None  # as in most places; faster than joining
        raw = "".join(texts[start:end])
        whole = raw == tokenizer.written_unknown and tokenizer.wordpiece.unknown == "word"
        marked = (mark_final or end < len(tokens)) and not whole
        if marked and not raw.endswith(marker):
            return None
        if tokenizer.options.normalization:  # composes jamo of the fallback
            raw = unicodedata.normalize("NFC", raw)
        word = raw.removesuffix(marker) if marked else raw
        wordpiece = tokenizer.wordpiece
        same = wordpiece.join_bytes(list(wordpiece.pieces(raw))) == tokens[start:end]
        return word if same and tokenizer.basic_tokens(word) == [word] else None

    dead_ends = set()  # places from which the rest cannot be split into words
    path = [(0, "")]  # (end of a word, the word)
    next_end = [1]
    while path[-1][0] < len(tokens):
        start, end = path[-1][0], next_end[-1]
        while end <= len(tokens):
            word = None if end in dead_ends else read_word(start, end)
            end += 1
            if word is not None:
                next_end[-1] = end
                path.append((end - 1, word))
                next_end.append(end)
                break
        else:
            dead_ends.add(start)
            path.pop()
            next_end.pop()
            if not path:  # no text has these pieces
                return "".join(texts).split(marker)
    return [word for _, word in path[1:]]
