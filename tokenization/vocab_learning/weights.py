"""Weighs words by how widely their stems are spread over a text."""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

from tokenization.vocab_learning.morphemes import BOUNDARY

Item = TypeVar("Item", bound=Hashable)

# About five articles of an encyclopedia. Boundary F1 against UD Korean Kaist (choosing half / test
# set) is 0.908 / 0.895 with count ** 0.75 as the weight, 0.911 / 0.897 with the number of blocks of
# 200 or 1,000 sentences in which a word occurs, and 0.002 / 0.001 higher if its stem counts once in
# a block; 100 and 200 sentences give similar results.
SENTENCES_PER_BLOCK = 100


def count_in_blocks(
    sentences: Iterable[list[Item]],
) -> tuple[Counter[Item], list["array[int]"]]:
    """Counts the items of sentences, and finds the blocks of sentences in which they occur.

    Returns:
        The number of occurrences of each item, in the order of first occurrence; and for each block
        the items that occur in it, as places in this order.
    """
    places: dict[Item, int] = {}
    counts, blocks = array("Q"), []
    block: set[int] = set()
    for number, items in enumerate(sentences, start=1):
        for item in items:
            place = places.setdefault(item, len(places))
            if place == len(counts):
                counts.append(0)
            counts[place] += 1
            block.add(place)
        if number % SENTENCES_PER_BLOCK == 0:
            blocks.append(array("I", sorted(block)))
            block.clear()
    blocks.append(array("I", sorted(block)))
    return Counter(dict(zip(places, counts, strict=True))), blocks


def spread_weights(
    marked_words: list[tuple[str, str]], blocks: Iterable["array[int]"]
) -> dict[tuple[str, str], float]:
    """Weighs words; those with the same stem share a weight of 1 in each block.

    A stem ends at the first BOUNDARY. A block holds the places of its words in `marked_words`.
    """
    stems: dict[str, int] = {}
    stem_of = array("I")
    for word, marks in marked_words:
        stem = word[: marks.index(BOUNDARY) + 1] if BOUNDARY in marks else word
        stem_of.append(stems.setdefault(stem, len(stems)))
    weights = [0.0] * len(marked_words)
    for block in blocks:
        sharing = Counter(stem_of[place] for place in block)
        for place in block:
            weights[place] += 1 / sharing[stem_of[place]]
    return dict(zip(marked_words, weights, strict=True))
