"""Cuts documents into pairs of segments with sentence labels.

The procedure follows google-research/albert create_pretraining_data.py: sentences are gathered
up to a target length and split into A and B between two sentences; B is then kept, replaced (next
sentence prediction) or swapped with A (sentence order prediction).

Three things differ, because Google's label can be guessed without reading the text:
  * The label is always a fair coin. Google labels a single sentence 1; here at least two are
    gathered, going back to earlier ones at the end of a document.
  * Sentence-order data contains no sentence of a different document.
  * In sentence-order data, the lengths of A and B do not reveal the order. The last sentence
    gathered exceeds the target, so it is longer than average. Half of the passes therefore gather
    from the end of the document, so that this sentence is in the first segment equally often.
    `LengthBalance` removes trends in the text (encyclopedia articles begin with long sentences).

In next-sentence data, where B is filled up as Google does, the total length still reveals a
little: a random B reaches the target, but a true B may end earlier with its document. On English
documents of a dozen sentences, at 128 tokens, guessing by length is right 53 % of the time at best.

Segments are ranges of token positions, so cutting, joining and swapping work on numbers.
"""

import bisect
import collections
import dataclasses
import random
from collections.abc import Sequence
from typing import NamedTuple

from create_pretraining_data.instances.text import TokenizedText

# The length of the shortest sequence with a pair: [CLS] a [SEP] b [SEP].
SHORTEST_SEQUENCE = 5


class Pair(NamedTuple):
    """Holds two segments as token ranges; the second is empty for objective "none"."""

    first_start: int
    first_end: int
    second_start: int
    second_end: int
    label: int  # 1 if the second is random (nsp) or the two are swapped (sop); 0 for "none"


@dataclasses.dataclass(frozen=True)
class PairRules:
    """Holds the rules for cutting documents into sequences."""

    objective: str  # "nsp", "sop" or "none"
    max_seq_length: int  # the maximum number of tokens in a sequence, including [CLS] and [SEP]
    short_seq_prob: float  # the probability of a shorter target length in a pass over a document
    cls_id: int
    sep_id: int
    long_lines: str = "truncate"  # one of `LONG_LINES`

    @property
    def room(self) -> int:
        """The maximum number of tokens in a sequence, without [CLS] and [SEP]."""
        return self.max_seq_length - (2 if self.objective == "none" else 3)


class LengthBalance:
    """Chooses splits so that either segment is the longer one equally often.

    For each size of the length difference, it counts how often the first segment was the longer one
    minus how often the second one was. A split that would increase a surplus is replaced by the
    split of the same sentences that reduces a different surplus most, if there is one. At every
    size, the difference in text order is therefore positive as often as negative, and swapping the
    segments by a fair coin leaves no trace in it.

    Two sentences can be split in only one way, so if the longer one mostly comes first, some of
    that trend remains.
    """

    # In tokens. Measured on encyclopedia articles, whole or cut to three or four sentences: 8 and
    # 16 balance every size, while with 32 differences within a bin begin to show.
    BIN = 16

    def __init__(self) -> None:
        self._surplus: collections.Counter[int] = collections.Counter()

    def choose(self, differences: Sequence[int], rng: random.Random) -> int:
        """Returns the index of a split, given each split's first minus second segment length."""
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
    """Creates the pairs of one pass over the document at `index`.

    Random sentences are drawn from the text's other documents, if any. The balance, shared by all
    documents, is only used by "sop". A document of one word has no pairs under "nsp" and "sop".
    """
    return _OBJECTIVES[rules.objective](text, index, rules, balance, rng)


def is_too_short_for_a_pair(text: TokenizedText, index: int) -> bool:
    """Returns True if a document is a single word, which cannot be cut into A and B."""
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
            # The sentences after the split were not used, so they are gathered again, except if
            # earlier ones were gathered too, at the document's end: that would loop forever.
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
    """Cuts a document into segments without losing tokens: the excess begins the next segment."""
    pairs, start, last = [], bounds[0], bounds[-1]
    while start < last:
        end = bounds[min(bisect.bisect_left(bounds, start + target), len(bounds) - 1)]
        if end - start > room:
            # Two rows share the end of a document, so that the last one is not just a full stop.
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
    """Gathers at least two sentences and at least `target` tokens, from sentence `start` on.

    If only the last sentence is left, one or more earlier ones are gathered again, up to a random
    length of at most the target. The last pair can therefore have any length and repeats little,
    and the returned range of sentences may begin before `start`. `bounds` says where each sentence
    begins and where the last one ends.
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
    """Returns the end of the sentences that reach the target, gathered from `start` on."""
    end = bisect.bisect_left(bounds, bounds[start] + target, start)
    return min(max(end, start + at_least), len(bounds) - 1)


def _at_least_two(text, index, rng):
    """Returns a document's sentence bounds; cuts a single sentence between words if possible."""
    bounds = text.sentence_bounds(index)
    if len(bounds) > 2:
        return bounds
    words = text.words_of(*bounds)
    if len(words) == 1:
        return bounds[:1]  # no sentence
    return [bounds[0], int(words[rng.randint(1, len(words) - 1)]), bounds[1]]


def _target_length(room, short_seq_prob, rng):
    # Mostly full sequences and some short ones, as in fine-tuning. The target is drawn once per
    # pass over a document, as in google-research/bert.
    return rng.randint(2, room) if rng.random() < short_seq_prob else room


def _random_sentences(text, index, target, rng):
    """Draws sentences from a different document if any, at least `target` tokens if possible."""
    other = index
    if text.num_documents > 1:
        other = rng.randrange(text.num_documents - 1)
        other += other >= index  # skips `index` itself
    bounds = text.sentence_bounds(other)
    start = rng.randrange(len(bounds) - 1)
    return bounds[start], bounds[_gather(bounds, start, target, at_least=1)]


def _length_differences(bounds, room):
    """Lists the first minus the second segment's length, for each possible split.

    Both lengths are for place A, which keeps one token more if both segments are truncated.
    """
    differences = []
    for split in bounds[1:-1]:
        first, second = split - bounds[0], bounds[-1] - split
        kept_first, _ = truncated_lengths(first, second, room)
        kept_second, _ = truncated_lengths(second, first, room)
        differences.append(kept_first - kept_second)
    return differences


def truncated_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """Returns two segments' lengths after truncating the longer one until both fit.

    It is truncated token by token; of two equally long segments, the second is truncated, as in
    google-research/bert. Lengths are in tokens; `room` is the maximum of their sum.
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
    """Removes `excess` tokens, each from a random end; removes none if it is not positive."""
    if excess <= 0:
        return start, end
    front = rng.getrandbits(excess).bit_count()  # the heads among `excess` coin tosses
    return start + front, end - (excess - front)
