"""Chooses the pieces of a vocabulary by how greedy longest match will use them.

A piece is spelled as in the vocabulary: "가" begins a word, "##가" continues one. Inside this file
the two kinds are two sets, `initial` and `continuing`, both without the prefix.
"""

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from bert_common.progress import with_progress
from tokenization.characters import is_syllable, jamo_of
from tokenization.vocab_learning.morphemes import BOUNDARY, EITHER, FREE, INSIDE

PREFIX = "##"

# The cost of a piece, and of a cut by the mark of its place; a missing cut at a BOUNDARY costs 1.
# With 0.1 for a piece or for a FREE cut, boundary F1 is the same within 0.001; half the cost of a
# piece cuts reviews into 2 % more pieces.
PIECE_COST = 0.2
CUT_COSTS = {INSIDE: 1.0, FREE: 0.2, EITHER: 0.0, BOUNDARY: 0.0}

# The number of candidates per place in the vocabulary: the heaviest morphemes, then the heaviest
# parts of morphemes, from which words outside any vocabulary are composed.
MORPHEMES_PER_PLACE, PARTS_PER_PLACE = 3.0, 1.5

# A part that occurs in fewer morphemes is no better than the morphemes themselves.
MORPHEMES_OF_A_PART = 5
LONGEST_PART = 5

# The share of the vocabulary that each round keeps: a piece's worth is computed with all others
# present, so removing many at once would remove both of two that can replace each other. The last
# rounds, at the final size, exchange pieces.
KEPT_PER_ROUND = 0.65
ROUNDS_AT_SIZE = 2

MarkedWords = Mapping[tuple[str, str], float]


def choose_pieces(marked_words: MarkedWords, places: int, fixed: Iterable[str]) -> list[str]:
    """Chooses pieces: morphemes, parts of morphemes, and Hangul syllables.

    A candidate's worth is the cost of removing it: all words that greedy longest match cuts with it
    are cut again without it. The worst candidates are removed, round by round; a removed one
    returns if it would gain more than a candidate that was kept.

    Args:
        marked_words: the weight of each (word, marks).
        fixed: pieces that are in the vocabulary regardless of their worth, including the other
            characters, because only a syllable can be spelled with jamo.

    Returns:
        The pieces, sorted; fewer than `places` if no other has a positive worth.
    """
    words = sorted((word, marks, weight) for (word, marks), weight in marked_words.items())
    fixed = frozenset(fixed)
    fixed_initial, fixed_continuing = split_kinds(fixed)
    all_initial, all_continuing = split_kinds(find_candidates(words, places))
    all_initial -= fixed_initial
    all_continuing -= fixed_continuing
    initial, continuing = all_initial, all_continuing
    sizes = _sizes(len(initial) + len(continuing), places)
    for size in with_progress(sizes, "choosing tokens", "rounds"):
        worths = piece_worths(
            words,
            initial | fixed_initial,
            continuing | fixed_continuing,
            all_initial - initial,
            all_continuing - continuing,
        )
        ranked = sorted(
            (-worth, piece) for piece, worth in worths.items() if worth > 0 and piece not in fixed
        )
        initial, continuing = split_kinds(piece for _, piece in ranked[:size])
    return sorted([*initial, *(PREFIX + piece for piece in continuing)])


def split_kinds(pieces: Iterable[str]) -> tuple[set[str], set[str]]:
    """Separates pieces that begin a word from pieces that continue one, and removes the prefix."""
    initial, continuing = set(), set()
    for piece in pieces:
        if _is_continuing(piece):
            continuing.add(piece[len(PREFIX) :])
        else:
            initial.add(piece)
    return initial, continuing


def _is_continuing(piece):
    return piece.startswith(PREFIX) and len(piece) > len(PREFIX)


def cut_greedily(word: str, initial: set[str], continuing: set[str], longest: int) -> list[int]:
    """Returns where the pieces of a word end; a character without a piece ends there too."""
    ends, start, pieces = [], 0, initial
    while start < len(word):
        start = _piece_end(word, start, min(len(word), start + longest), pieces)
        ends.append(start)
        pieces = continuing
    return ends


def _piece_end(word, start, most, pieces):
    """Returns the end of the longest piece from `start` on that does not end after `most`."""
    while most > start + 1 and word[start:most] not in pieces:
        most -= 1
    return most


def _sizes(candidates, places):
    """Returns the number of pieces to keep in each round."""
    sizes = []
    while candidates * KEPT_PER_ROUND > max(places, 1):
        candidates = int(candidates * KEPT_PER_ROUND)
        sizes.append(candidates)
    return [*sizes, *[places] * ROUNDS_AT_SIZE]


def find_candidates(words: list[tuple[str, str, float]], places: int) -> list[str]:
    """Finds the pieces worth trying: morphemes, parts of morphemes, syllables.

    Takes (word, marks, weight) of each word and the number of pieces to be chosen in the end.
    """
    morphemes: defaultdict[str, float] = defaultdict(float)
    for word, marks, weight in words:
        for start, end in _morphemes(len(word), marks):
            if end - start > 1:
                morphemes[(PREFIX if start else "") + word[start:end]] += weight
    ranked = sorted(morphemes.items(), key=lambda item: (-item[1], item[0]))
    candidates = [piece for piece, _ in ranked[: int(places * MORPHEMES_PER_PLACE)]]
    parts: defaultdict[str, float] = defaultdict(float)
    owners: Counter[str] = Counter()
    for piece, weight in ranked:
        prefix = PREFIX if _is_continuing(piece) else ""
        text = piece[len(prefix) :]
        for start in range(len(text)):
            for end in range(start + 2, min(len(text), start + LONGEST_PART) + 1):
                if end - start < len(text):
                    part = (PREFIX if start else prefix) + text[start:end]
                    parts[part] += weight**0.5  # many morphemes count more than a frequent one
                    owners[part] += 1
    known = set(candidates)
    ranked = sorted(
        (-weight, part)
        for part, weight in parts.items()
        if owners[part] >= MORPHEMES_OF_A_PART and part not in known
    )
    candidates += [part for _, part in ranked[: int(places * PARTS_PER_PLACE)]]
    return candidates + sorted(_syllables(word for word, _, _ in words))


def _syllables(words):
    """Returns the pieces of one syllable that occur in words."""
    characters = set()
    for word in words:
        characters.add(word[0])
        characters.update(PREFIX + character for character in word[1:])
    return {piece for piece in characters if is_syllable(piece[-1])}


def _morphemes(length, marks):
    """Yields (start, end) between places that may be cut, without a BOUNDARY inside."""
    places = [
        0,
        *(i for i, mark in enumerate(marks, start=1) if mark in (BOUNDARY, EITHER)),
        length,
    ]
    for i, start in enumerate(places[:-1]):
        for end in places[i + 1 :]:
            yield start, end
            if end == length or marks[end - 1] == BOUNDARY:
                break


def piece_worths(
    words: list[tuple[str, str, float]],
    initial: set[str],
    continuing: set[str],
    absent_initial: set[str],
    absent_continuing: set[str],
) -> dict[str, float]:
    """Computes the worth of every piece: how much more greedy longest match would cost without it.

    Words are (word, marks, weight). The sets hold the vocabulary's pieces and the absent candidates
    that begin or continue a word. A candidate's worth is how much less matching would cost with it.

    Returns:
        The worth of each piece with which any word is or would be cut; negative if it does harm. If
        a word repeats itself (ㅋㅋㅋㅋ), a piece counts at each of its places as if it were absent
        only there.
    """
    initial_worths: defaultdict[str, float] = defaultdict(float)
    continuing_worths: defaultdict[str, float] = defaultdict(float)
    pieces = [*initial, *continuing, *absent_initial, *absent_continuing]
    longest = max(map(len, pieces), default=1)
    for word, marks, weight in words:
        length = len(word)
        costs = {}  # start of a piece -> the cost of the word from there on
        ends = cut_greedily(word, initial, continuing, longest)
        cut = list(zip([0, *ends], ends, strict=False))
        total = 0.0
        costs[length] = 0.0
        for start, end in reversed(cut):
            total += _cost(word, marks, start, end, continuing if start else initial)
            costs[start] = total
        for start, end in cut:
            worths = continuing_worths if start else initial_worths
            present = continuing if start else initial
            if end - start > 1:
                shorter = _piece_end(word, start, end - 1, present)
                cost = _cost(word, marks, start, shorter, present)
                cost += _cost_from(word, marks, shorter, continuing, longest, costs)
                worths[word[start:end]] += weight * (cost - costs[start])
            elif is_syllable(word[start]):  # it ends here with or without its piece
                worths[word[start]] += weight * PIECE_COST * (jamo_count(word[start]) - 1)
            absent = absent_continuing if start else absent_initial
            for longer in range(end + 1, min(length, start + longest) + 1):
                if word[start:longer] in absent:
                    cost = _cost(word, marks, start, longer, absent)
                    cost += _cost_from(word, marks, longer, continuing, longest, costs)
                    worths[word[start:longer]] += weight * (costs[start] - cost)
    prefixed = {PREFIX + piece: worth for piece, worth in continuing_worths.items()}
    return {**initial_worths, **prefixed}


def _cost(word, marks, start, end, pieces):
    """Returns the cost of one piece, including the cost of the cut at its end."""
    cost = PIECE_COST
    if end - start > 1:
        cost += marks.count(BOUNDARY, start, end - 1)
    elif word[start] not in pieces:
        cost *= jamo_count(word[start])
    return cost + CUT_COSTS[marks[end - 1]] if end < len(word) else cost


@functools.cache
def jamo_count(character: str) -> int:
    """Returns the number of pieces that spell a character without a piece of its own."""
    return len(jamo_of(character)) if is_syllable(character) else 1


def _cost_from(word, marks, start, continuing, longest, costs):
    """Returns the cost of a word from `start` on; `costs` holds it where the usual pieces begin."""
    cost, length = 0.0, len(word)
    while start not in costs:
        end = _piece_end(word, start, min(length, start + longest), continuing)
        cost += _cost(word, marks, start, end, continuing)
        start = end
    return cost + costs[start]
