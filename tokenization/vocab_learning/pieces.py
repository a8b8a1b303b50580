"""Chooses the pieces of a vocabulary by what greedy longest match will do with them.

A piece is written as in the vocabulary: "가" begins a word, "##가" goes on with one. Inside this
file the two kinds are two sets, `starts` and `rests`, both without the prefix.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from bert_common.progress import with_progress
from tokenization.vocab_learning.morphemes import BOUNDARY, INSIDE

PREFIX = "##"

# Words are weighted by count ** 0.75: between tokens (1.0), where a few hundred words decide
# everything, and types (0.0). Rare words stand for those that the sample does not show.
WEIGHT_EXPONENT = 0.75

# A cut inside a morpheme costs 1, a place not cut between morphemes costs 1, a piece this much.
PIECE_COST = 0.2

# How many candidates are looked at for each place in the vocabulary: morphemes by their count,
# then parts of morphemes, of which words that are in no vocabulary are put together.
MORPHEMES_PER_PLACE, PARTS_PER_PLACE = 3.0, 1.5

# A part must be seen in so many morphemes, or it is as good as the one it is from.
MORPHEMES_OF_A_PART = 5
LONGEST_PART = 5

# In each round so much of the vocabulary stays: what a piece is worth is computed with all
# others in place, so that taking out many at once would take out both of two that stand in
# for each other. The last rounds, at the final size, trade pieces in and out.
KEPT_PER_ROUND = 0.65
ROUNDS_AT_SIZE = 2

MarkedWords = Mapping[tuple[str, str], int]


def choose_pieces(marked_words: MarkedWords, places: int, fixed: Iterable[str]) -> list[str]:
    """Chooses the pieces of two or more characters.

    Every candidate is worth what taking it away would cost, by cutting again, without it, all
    words that greedy longest match cuts with it. The worst go, round by round; a candidate
    that went comes back when it would gain more than one that stayed.

    Args:
        marked_words: how often each (word, marks) occurs.
        places: the most pieces to choose.
        fixed: pieces that are in the vocabulary whatever they are worth.

    Returns:
        The pieces, sorted; fewer than `places` when no other is worth its place.
    """
    words = sorted(
        (word, marks, count**WEIGHT_EXPONENT)
        for (word, marks), count in marked_words.items()
        if len(word) > 1
    )
    fixed = frozenset(fixed)
    fixed_starts, fixed_rests = split_kinds(fixed)
    pool_starts, pool_rests = split_kinds(find_candidates(words, places))
    pool_starts -= fixed_starts
    pool_rests -= fixed_rests
    starts, rests = pool_starts, pool_rests
    sizes = _sizes(len(starts) + len(rests), places)
    for size in with_progress(sizes, "choosing pieces", "rounds"):
        worths = piece_worths(
            words,
            starts | fixed_starts,
            rests | fixed_rests,
            pool_starts - starts,
            pool_rests - rests,
        )
        ranked = sorted(
            (-worth, piece) for piece, worth in worths.items() if worth > 0 and piece not in fixed
        )
        starts, rests = split_kinds(piece for _, piece in ranked[:size])
    return sorted([*starts, *(PREFIX + piece for piece in rests)])


def split_kinds(pieces: Iterable[str]) -> tuple[set[str], set[str]]:
    """Pieces that begin a word, pieces that go on with one; both without the prefix."""
    starts, rests = set(), set()
    for piece in pieces:
        if _is_rest(piece):
            rests.add(piece[len(PREFIX) :])
        else:
            starts.add(piece)
    return starts, rests


def _is_rest(piece):
    return piece.startswith(PREFIX) and len(piece) > len(PREFIX)


def cut_greedily(word: str, starts: set[str], rests: set[str], longest: int) -> list[int]:
    """Where the pieces of a word end; a character without a piece is one by itself."""
    ends, start, pieces = [], 0, starts
    while start < len(word):
        end = min(len(word), start + longest)
        while end > start + 1 and word[start:end] not in pieces:
            end -= 1
        ends.append(end)
        start, pieces = end, rests
    return ends


def _sizes(candidates, places):
    """How many pieces stay after each round."""
    sizes = []
    while candidates * KEPT_PER_ROUND > max(places, 1):
        candidates = int(candidates * KEPT_PER_ROUND)
        sizes.append(candidates)
    return [*sizes, *[places] * ROUNDS_AT_SIZE]


def find_candidates(words: list[tuple[str, str, float]], places: int) -> list[str]:
    """The pieces of two or more characters worth trying: morphemes, parts of morphemes.

    Args:
        words: (word, marks, weight).
        places: how many pieces will be chosen in the end.
    """
    morphemes = Counter()
    for word, marks, weight in words:
        for start, end in _morphemes(len(word), marks):
            if end - start > 1:
                morphemes[(PREFIX if start else "") + word[start:end]] += weight
    ranked = sorted(morphemes.items(), key=lambda item: (-item[1], item[0]))
    candidates = [piece for piece, _ in ranked[: int(places * MORPHEMES_PER_PLACE)]]
    parts, owners = Counter(), Counter()
    for piece, weight in ranked:
        prefix = PREFIX if _is_rest(piece) else ""
        text = piece[len(prefix) :]
        for start in range(len(text)):
            for end in range(start + 2, min(len(text), start + LONGEST_PART) + 1):
                if end - start < len(text):
                    part = (PREFIX if start else prefix) + text[start:end]
                    parts[part] += weight**0.5  # many morphemes count more than one frequent
                    owners[part] += 1
    known = set(candidates)
    ranked = sorted(
        (-weight, part)
        for part, weight in parts.items()
        if owners[part] >= MORPHEMES_OF_A_PART and part not in known
    )
    return candidates + [part for _, part in ranked[: int(places * PARTS_PER_PLACE)]]


def _morphemes(length, marks):
    """The (start, end) between places that may be cut, without a BOUNDARY inside."""
    places = [0, *(i for i, mark in enumerate(marks, start=1) if mark != INSIDE), length]
    for i, start in enumerate(places[:-1]):
        for end in places[i + 1 :]:
            yield start, end
            if end == length or marks[end - 1] == BOUNDARY:
                break


def piece_worths(
    words: list[tuple[str, str, float]],
    starts: set[str],
    rests: set[str],
    absent_starts: set[str],
    absent_rests: set[str],
) -> dict[str, float]:
    """What every piece is worth: how much more greedy longest match would cost without it.

    Args:
        words: (word, marks, weight).
        starts: the vocabulary's pieces at the beginning of a word.
        rests: the others.
        absent_starts: candidates that are not in the vocabulary; what one of them is worth is
            how much less greedy longest match would cost with it.
        absent_rests: the others.

    Returns:
        The worth of each piece that any word is cut with, or would be; below 0 it does harm.
    """
    worth_of_start, worth_of_rest = defaultdict(float), defaultdict(float)
    longest = max(map(len, [*starts, *rests, *absent_starts, *absent_rests]), default=1)
    for word, marks, weight in words:
        length = len(word)
        costs = {}  # start of a piece -> what the word costs from there on
        ends = cut_greedily(word, starts, rests, longest)
        cut = list(zip([0, *ends], ends, strict=False))
        total = 0.0
        costs[length] = 0.0
        for start, end in reversed(cut):
            total += _cost(marks, start, end, length)
            costs[start] = total
        for start, end in cut:
            worths = worth_of_rest if start else worth_of_start
            if end - start > 1:
                without = _cost_without(word, marks, start, end, starts, rests, longest, costs)
                worths[word[start:end]] += weight * (without - costs[start])
            absent = absent_rests if start else absent_starts
            for longer in range(end + 1, min(length, start + longest) + 1):
                if word[start:longer] in absent:
                    cost = _cost(marks, start, longer, length)
                    cost += _cost_from(word, marks, longer, rests, longest, costs)
                    worths[word[start:longer]] += weight * (costs[start] - cost)
    return {**worth_of_start, **{PREFIX + piece: w for piece, w in worth_of_rest.items()}}


def _cost(marks, start, end, length):
    """What one piece costs, with the cut at its end."""
    cost = PIECE_COST + marks.count(BOUNDARY, start, end - 1)
    return cost + 1 if end < length and marks[end - 1] == INSIDE else cost


def _cost_without(word, marks, start, end, starts, rests, longest, costs):
    """What the word costs from `start` on when the piece there is not in the vocabulary."""
    pieces = rests if start else starts
    shorter = end - 1
    while shorter > start + 1 and word[start:shorter] not in pieces:
        shorter -= 1
    cost = _cost(marks, start, shorter, len(word))
    return cost + _cost_from(word, marks, shorter, rests, longest, costs)


def _cost_from(word, marks, start, rests, longest, costs):
    """What the word costs from `start` on; `costs` knows it for the usual cuts."""
    cost, length = 0.0, len(word)
    while start not in costs:
        end = min(length, start + longest)
        while end > start + 1 and word[start:end] not in rests:
            end -= 1
        cost += _cost(marks, start, end, length)
        start = end
    return cost + costs[start]
