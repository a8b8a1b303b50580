"""From pieces back to a text that gives the same pieces."""

import unicodedata

UNKNOWN_TOKEN = "[UNK]"

# What is written for the unknown, in order of choice. Private use is larger than a vocabulary.
UNKNOWN_WORD = (*"\u22a0\u22a1", *map(chr, (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))))
UNKNOWN_PUNCTUATION = "\u2042\u2051\u203b\u2020\u2021\u2058\u2059\u205a\u205c\u205e"
UNKNOWN_CHINESE = tuple(map(chr, range(0x9FA5, 0x4DFF, -1)))


def unknown_character(tokens, candidates=UNKNOWN_WORD) -> str:
    """Returns the character that stands for the unknown: the first that no token holds.

    Args:
        tokens: the vocabulary.
        candidates: by default none is a letter, a punctuation mark, or one that normalisation
            changes.
    """
    used = set().union(*tokens)
    return next(character for character in candidates if character not in used)


def words_by_prefix(wordpiece, unknown: str, tokens: list[str], marker: str = "") -> list[str]:
    """Joins pieces to words as they were given to WordPiece, markers at their ends included.

    A word begins at each piece without the prefix. An [UNK] that stands for one character goes
    with the word before it, whose pieces are the same either way, unless that has its marker.

    Args:
        wordpiece: what cut the words.
        unknown: what is written for [UNK].
        tokens: as `tokenize` gives them.
        marker: what words end with, or "".
    """
    prefix, words = wordpiece.continuation_prefix, []
    for token in tokens:
        text, continues = token, False
        if token == UNKNOWN_TOKEN:
            text, continues = unknown, wordpiece.unknown == "character"
            if marker and words and words[-1][-1].endswith(marker):
                continues = words[-1] == [marker]  # a literal one: a word is more than its marker
        elif prefix and token != prefix and token.startswith(prefix):
            text, continues = token[len(prefix) :], True
        if continues and words:
            if wordpiece.unknown == "word" and words[-1] == [unknown]:
                words[-1] = [UNKNOWN_TOKEN]  # a word that goes on was not unknown, but said so
            words[-1].append(text)
        else:
            words.append([text])
    return ["".join(word) for word in words]


def words_by_marker(tokenizer, tokens: list[str], marker: str, mark_final: bool) -> list[str]:
    """Returns words, without their markers, of pieces that have no prefix.

    A text may spell the marker itself, so an end is where the word that ends there gives just
    these pieces; the nearest such end is tried first.

    Args:
        tokenizer: has `wordpiece`, `written_unknown`, `basic_tokens`.
        tokens: as `tokenize` gives them.
        marker: what each word ends with.
        mark_final: the last word has it too.
    """
    texts = [tokenizer.written_unknown if token == UNKNOWN_TOKEN else token for token in tokens]

    def is_word(start, end):
        # A text may also spell the unknown token.
        found = spells(texts, start, end)
        return spells(tokens, start, end) if found is None else found

    def spells(texts, start, end):
        unmarked_end = end == len(tokens) or tokens[end - 1] == UNKNOWN_TOKEN
        if not unmarked_end and texts[end - 1][-1] != marker[-1]:
            return None  # most places, without joining anything
        raw = "".join(texts[start:end])
        whole = raw == tokenizer.written_unknown and tokenizer.wordpiece.unknown == "word"
        marked = (mark_final or end < len(tokens)) and not whole
        if marked and not raw.endswith(marker):
            return None
        if tokenizer.normalization:  # jamo that the fallback took apart
            raw = unicodedata.normalize(tokenizer.normalization, raw)
        word = raw.removesuffix(marker) if marked else raw
        same = list(tokenizer.wordpiece.pieces(raw)) == tokens[start:end]
        return word if same and tokenizer.basic_tokens(word) == [word] else None

    dead = set()  # places from where no way leads to the end
    path = [(0, "")]  # ends of words, each with its word
    next_end = [1]
    while path[-1][0] < len(tokens):
        start, end = path[-1][0], next_end[-1]
        while end <= len(tokens):
            word = None if end in dead else is_word(start, end)
            end += 1
            if word is not None:
                next_end[-1] = end
                path.append((end - 1, word))
                next_end.append(end)
                break
        else:
            dead.add(start)
            path.pop()
            next_end.pop()
            if not path:  # no text gives these pieces
                return "".join(texts).split(marker)
    return [word for _, word in path[1:]]
