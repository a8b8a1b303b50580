"""Describes how a vocabulary cuts the text it was learned from."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tokenization.characters import is_syllable
from tokenization.vocab_learning.morphemes import BOUNDARY, INSIDE
from tokenization.vocab_learning.pieces import PREFIX, cut_greedily, jamo_count, split_kinds


def describe_usage(
    marked_words: Counter[tuple[str, str]], pieces: Iterable[str], by_bytes: bool = False
) -> dict[str, Any]:
    """Describes how greedy longest match cuts the training text.

    Args:
        marked_words: the number of occurrences of each (word, marks).
        pieces: the vocabulary, without lines that no text can become.
        by_bytes: whether characters other than syllables are spelled by their bytes.

    Returns:
        pieces_per_word; boundary_precision and boundary_recall against the marks; uses, the number
        of occurrences of each piece, and of each syllable that the jamo spell.
    """
    pieces = set(pieces)
    initial, continuing = split_kinds(pieces)
    longest = max(map(len, [*initial, *continuing]))
    uses: Counter[str] = Counter()
    further = hits = wrong = missed = words = 0
    for (word, marks), count in marked_words.items():
        ends = cut_greedily(word, initial, continuing, longest)
        for start, end in zip([0, *ends], ends, strict=False):
            piece = (PREFIX if start else "") + word[start:end]
            uses[piece] += count
            if piece not in pieces:
                character = word[start]
                one_by_one = by_bytes and not is_syllable(character)
                size = len(character.encode("utf-8")) if one_by_one else jamo_count(character)
                further += count * (size - 1)
        cut = [marks[end - 1] for end in ends[:-1]]
        words += count
        hits += count * cut.count(BOUNDARY)
        wrong += count * cut.count(INSIDE)
        missed += count * (marks.count(BOUNDARY) - cut.count(BOUNDARY))
    return {
        "pieces_per_word": round((uses.total() + further) / words, 4) if words else None,
        "boundary_precision": round(hits / (hits + wrong), 4) if hits + wrong else None,
        "boundary_recall": round(hits / (hits + missed), 4) if hits + missed else None,
        "uses": uses,
    }
