"""Cuts documents into pairs of segments with sentence labels.

The procedure follows google-research/albert create_pretraining_data.py: sentences are gathered
up to a target length and split into A and B between two sentences; B is then kept, replaced (next
sentence prediction) or swapped with A (sentence order prediction).

Three things differ, because Google's label can be guessed without reading the text:
  * The label is always a fair coin. Google labels a single sentence 1; here at least two are
    gathered, going back to earlier ones at the end of a document.
  * Sentence-order data contains no sentence of another document.
  * In sentence-order data the lengths of A and B do not reveal the order. The sentence that exceeds
    the target is the last one gathered, hence longer than average; half of the passes gather from
    the end of the document, so that it is in the first segment equally often. `LengthBalance`
    removes trends in the text (the first sentences of an encyclopedia's article are long).

In next-sentence data, where B is filled up as Google does, the total length still reveals a
little: a random B reaches the target, a true one ends with its document. On English text in
documents of a dozen sentences, at 128 pieces, the best guess by length is right 53 % of the time.

A segment is a range of the text's pieces, so cutting, joining and swapping are done on numbers.
"""

import bisect
import collections
import dataclasses
import random
from collections.abc import Sequence
from typing import NamedTuple

from create_pretraining_data.instances.text import TokenizedText

# The shortest sequence of a pair: [CLS] a [SEP] b [SEP].
SHORTEST_SEQUENCE = 5


class Pair(NamedTuple):
    """Two segments as ranges of the text's pieces; the second is empty for objective "none"."""

    first_start: int
    first_end: int
    second_start: int
    second_end: int
    label: int  # 1 if the second is random (nsp) or the two are swapped (sop); 0 for "none"


@dataclasses.dataclass(frozen=True)
class PairRules:
    """The rules for cutting documents into sequences."""

    objective: str  # "nsp", "sop" or "none"
    max_seq_length: int  # the maximum number of pieces in a sequence, including [CLS] and [SEP]
    short_seq_prob: float  # the probability of a shorter target length in a pass over a document
    cls_id: int
    sep_id: int
    long_lines: str = "truncate"  # one of `LONG_LINES`

    @property
    def room(self) -> int:
        """The most pieces of a sequence, without [CLS] and [SEP]."""
        return self.max_seq_length - (2 if self.objective == "none" else 3)


class LengthBalance:
    """Chooses splits such that either segment is the longer one equally often.

    For each size of the difference in length, it counts how often the first segment was the longer
    one minus how often the second was. A split that would increase a surplus is exchanged for the
    split of the same sentences that reduces another surplus most, if there is one. So the
    difference in text order becomes positive as often as negative at every size, and swapping the
    segments by a fair coin leaves no trace in it.

    Two sentences leave no choice. If in most cases the longer sentence must come first, some of
    that trend remains.
    """

    # In pieces. Measured on encyclopedia articles, whole and cut to three or four sentences: 8 and
    # 16 balance every size; with 32, differences within a bin begin to show.
    BIN = 16

    def __init__(self) -> None:
        self._surplus: collections.Counter[int] = collections.Counter()

    def choose(self, differences: Sequence[int], rng: random.Random) -> int:
        """Chooses a split by the first segment's length minus the second's; returns its index."""
        choice = rng.randrange(len(differences))
        # Positive if a split increases a surplus, negative if it lowers one.
        effects = [self._surplus[abs(d) // self.BIN] * _sign(d) for d in differences]
        if effects[choice] > 0:
            best = min(effects)
            choice = rng.choice([k for k, effect in enumerate(effects) if effect == best])
        self._surplus[abs(differences[choice]) // self.BIN] += _sign(differences[choice])
        return choice


def _sign(number):
    return (number > 0) - (number < 0)


def make_pairs(
    text: TokenizedText, index: int, rules: PairRules, balance: LengthBalance, rng: random.Random
) -> list[Pair]:
    """Creates the pairs of one pass over the document with this index in the text.

    Random sentences are drawn from its other documents, if any. The balance is the same for all
    documents, and used by "sop" alone. There are no pairs for a document of one word under "nsp"
    and "sop".
    """
    return _OBJECTIVES[rules.objective](text, index, rules, balance, rng)


def is_too_short_for_a_pair(text: TokenizedText, index: int) -> bool:
    """Whether a document is a single word, which cannot be cut into A and B."""
    bounds = text.sentence_bounds(index)
    return len(bounds) == 2 and len(text.words_of(*bounds)) == 1


def _next_sentence_pairs(text, index, rules, balance, rng):
    bounds = _at_least_two(text, index, rng)
    room = rules.room
    target = _target_length(room, rules.short_seq_prob, rng)
    pairs, start, last = [], 0, len(bounds) - 1
    while start < last:
        sentences = gather_sentences(bounds, start, target, rng)
        split = rng.randint(sentences.start + 1, sentences.stop - 1)
        first = bounds[sentences.start], bounds[split]
        is_random = rng.random() < 0.5
        if is_random:
            second = _random_sentences(text, index, target - (first[1] - first[0]), rng)
            # The sentences after the split were not used and are gathered again, except at the end
            # of the document, where this would never end as earlier sentences are gathered too.
            start = sentences.stop if sentences.start < start else split
        else:
            second = bounds[split], bounds[sentences.stop]
            start = sentences.stop
        pairs.append(_pair(first, second, int(is_random), room, rng))
    return pairs


def _sentence_order_pairs(text, index, rules, balance, rng):
    bounds = _at_least_two(text, index, rng)
    room = rules.room
    target = _target_length(room, rules.short_seq_prob, rng)
    from_the_end = rng.random() < 0.5
    if from_the_end:
        bounds = [-bound for bound in reversed(bounds)]
    pairs, start, last = [], 0, len(bounds) - 1
    while start < last:
        sentences = gather_sentences(bounds, start, target, rng)
        start = sentences.stop
        inside = bounds[sentences.start : sentences.stop + 1]
        if from_the_end:
            inside = [-bound for bound in reversed(inside)]
        split = inside[1 + balance.choose(_length_differences(inside, room), rng)]
        pair = (inside[0], split), (split, inside[-1])
        is_swapped = rng.random() < 0.5
        first, second = reversed(pair) if is_swapped else pair
        pairs.append(_pair(first, second, int(is_swapped), room, rng))
    return pairs


def _single_segments(text, index, rules, balance, rng):
    bounds = text.sentence_bounds(index)
    room = rules.room
    target = _target_length(room, rules.short_seq_prob, rng)
    if rules.long_lines == "split":
        return _whole_segments(text, bounds, target, room)
    pairs, start = [], 0
    while start < len(bounds) - 1:
        end = _gather(bounds, start, target, at_least=1)
        segment = _truncate(bounds[start], bounds[end], bounds[end] - bounds[start] - room, rng)
        pairs.append(Pair(*segment, 0, 0, 0))
        start = end
    return pairs


def _whole_segments(text, bounds, target, room):
    """Cuts a document into segments without losing a piece: what exceeds one begins the next."""
    pairs, start, last = [], bounds[0], bounds[-1]
    while start < last:
        end = bounds[min(bisect.bisect_left(bounds, start + target), len(bounds) - 1)]
        if end - start > room:
            # Two rows share the end of a document, so that the last one is not a full stop alone.
            rest = last - start
            longest = rest - rest // 2 if rest <= room + room // 4 else room
            words = text.words_of(start + 1, start + longest + 1)
            end = int(words[-1]) if len(words) else start + longest
        pairs.append(Pair(start, end, 0, 0, 0))
        start = end
    return pairs


_OBJECTIVES = {
    "nsp": _next_sentence_pairs,
    "sop": _sentence_order_pairs,
    "none": _single_segments,
}
OBJECTIVES = tuple(_OBJECTIVES)


def gather_sentences(bounds: Sequence[int], start: int, target: int, rng: random.Random) -> range:
    """Gathers sentences from `start` on, at least `target` pieces and at least two sentences.

    If only the last sentence is left, at least one earlier sentence is gathered again, up to a
    random length of at most the target: so the last pair has any length, and repeats little. Hence
    the range of sentences may begin before `start`. `bounds` says where each sentence begins, and
    where the last one ends.
    """
    end = _gather(bounds, start, target, at_least=2)
    if end - start >= 2:
        return range(start, end)
    wanted = rng.randint(1, target)
    first = start - 1
    while first > 0 and bounds[end] - bounds[first] < wanted:
        first -= 1
    return range(first, end)


def _gather(bounds, start, target, at_least):
    """The sentence after those from `start` on that reach the target."""
    end = bisect.bisect_left(bounds, bounds[start] + target, start)
    return min(max(end, start + at_least), len(bounds) - 1)


def _at_least_two(text, index, rng):
    """The bounds of a document's sentences; a single one is cut between two words if possible."""
    bounds = text.sentence_bounds(index)
    if len(bounds) > 2:
        return bounds
    words = text.words_of(*bounds)
    if len(words) == 1:
        return bounds[:1]  # no sentence
    return [bounds[0], int(words[rng.randint(1, len(words) - 1)]), bounds[1]]


def _target_length(room, short_seq_prob, rng):
    # Mostly full sequences, and some short ones, as in fine-tuning. Drawn once for each pass over a
    # document, as in google-research/bert.
    return rng.randint(2, room) if rng.random() < short_seq_prob else room


def _random_sentences(text, index, target, rng):
    """Draws consecutive sentences of another document, at least `target` pieces if possible."""
    other = index
    if text.num_documents > 1:
        other = rng.randrange(text.num_documents - 1)
        other += other >= index  # skips `index` itself
    bounds = text.sentence_bounds(other)
    start = rng.randrange(len(bounds) - 1)
    return bounds[start], bounds[_gather(bounds, start, target, at_least=1)]


def _length_differences(bounds, room):
    """Lists the length of the first segment minus the second's, for each possible split.

    Both lengths are as in place A, which keeps one piece more if both must be truncated.
    """
    differences = []
    for split in bounds[1:-1]:
        first, second = split - bounds[0], bounds[-1] - split
        kept_first, _ = truncated_lengths(first, second, room)
        kept_second, _ = truncated_lengths(second, first, room)
        differences.append(kept_first - kept_second)
    return differences


def truncated_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """The lengths of two segments after truncating the longer one, piece by piece, until both fit.

    Of two equally long segments the second is truncated, as in google-research/bert. Lengths are
    in pieces; `room` is the maximum of their sum.
    """
    kept = min(second, max(room // 2, room - first))
    return min(first, room - kept), kept


def _pair(
    first: tuple[int, int], second: tuple[int, int], label: int, room: int, rng: random.Random
) -> Pair:
    lengths = truncated_lengths(first[1] - first[0], second[1] - second[0], room)
    first, second = (
        _truncate(start, end, end - start - length, rng)
        for (start, end), length in zip((first, second), lengths, strict=True)
    )
    return Pair(*first, *second, label)


def _truncate(start: int, end: int, excess: int, rng: random.Random) -> tuple[int, int]:
    """Removes `excess` pieces, each from a random end; none if it is not positive."""
    if excess <= 0:
        return start, end
    front = rng.getrandbits(excess).bit_count()  # the heads among `excess` fair coins
    return start + front, end - (excess - front)
