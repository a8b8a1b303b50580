"""Cuts documents into pairs of segments with their sentence label.

The plan is that of google-research/albert create_pretraining_data.py: sentences are gathered
until they reach a target length, the chunk is split into A and B between two sentences, and B is
kept, replaced (next sentence prediction) or swapped with A (sentence order prediction).

What differs, because Google's label can be guessed without reading the text:
  * the label is a fair coin, always. Google labels a chunk of one sentence 1; here a chunk goes
    on to two sentences, or takes earlier ones along when the document has no more;
  * sentence-order data holds no sentence of another document;
  * in sentence-order data the lengths of A and B do not tell the order. The sentence that
    oversteps the target is the last one gathered, hence longer than average; half of the passes
    gather from the end of the document, so that it lies in the first segment as often. Texts
    have a trend of their own (an encyclopedia's first sentences are long), which
    `LengthBalance` takes out.

In next-sentence data, where Google's way of filling up B is kept, the total length still says a
little: a random B goes on to the target, a true one ends with its document. On English text in
documents of a dozen sentences, at 128 pieces, the best guess by length alone is right 53 % of
the time.

A segment is a range of the text's pieces: what is cut, joined, swapped here are numbers alone.
"""

import bisect
import collections
import dataclasses
from typing import NamedTuple

# Below this a pair does not fit: [CLS] a [SEP] b [SEP].
SHORTEST_SEQUENCE = 5


class Pair(NamedTuple):
    """Two segments as ranges of the text's pieces; the second is empty with objective "none"."""

    first_start: int
    first_end: int
    second_start: int
    second_end: int
    label: int  # 1: the second is random (nsp), or the two are swapped (sop); 0 where there is none


@dataclasses.dataclass(frozen=True)
class PairRules:
    """How sequences are cut.

    Attributes:
        objective: "nsp", "sop" or "none".
        max_seq_length: the most pieces of a sequence, [CLS] and [SEP] included.
        short_seq_prob: the share of document passes with a shorter target length.
        cls_id: the id of [CLS].
        sep_id: the id of [SEP].
    """

    objective: str
    max_seq_length: int
    short_seq_prob: float
    cls_id: int
    sep_id: int


class LengthBalance:
    """Keeps an account of which segment was the longer one, to choose splits that even it out.

    For each size of the difference it counts how often the first segment was longer less how
    often the second was. A split that would add to a surplus is exchanged for the one that pays
    off most of another, if the chunk has one. So the difference in text order becomes as often
    positive as negative at every size, and swapping the segments by a fair coin leaves no trace
    in it.

    A chunk of two sentences leaves no choice. Where a text is so one-sided that most chunks must
    have the longer sentence first, some of it stays.
    """

    # Pieces. Measured on encyclopedia articles, whole and cut to three or four sentences: at 8
    # and 16 every size is even, at 32 differences within one bin begin to show.
    BIN = 16

    def __init__(self):
        self._surplus = collections.Counter()

    def choose(self, differences, rng):
        """Chooses one of the splits of a chunk.

        Args:
            differences: for each split the first segment's length minus the second's.
            rng: a `random.Random`.

        Returns:
            The index of the split.
        """
        choice = rng.randrange(len(differences))
        effects = [self._effect(difference) for difference in differences]
        if effects[choice] > 0:
            best = min(effects)
            choice = rng.choice([k for k, effect in enumerate(effects) if effect == best])
        self._surplus[abs(differences[choice]) // self.BIN] += _sign(differences[choice])
        return choice

    def _effect(self, difference):
        """Positive if a split of this difference adds to a surplus, negative if it pays one."""
        return self._surplus[abs(difference) // self.BIN] * _sign(difference)


def _sign(number):
    return (number > 0) - (number < 0)


def make_pairs(text, index, rules, balance, rng):
    """Makes the pairs of one pass over one document.

    Args:
        text: a `Text`; its other documents are where random sentences come from, if there are any.
        index: which document.
        rules: `PairRules`.
        balance: a `LengthBalance`, the same for all documents; only "sop" writes to it.
        rng: a `random.Random`.

    Returns:
        A list of `Pair`; empty for a document of one word under "nsp" and "sop".
    """
    return _OBJECTIVES[rules.objective](text, index, rules, balance, rng)


def is_too_short_for_a_pair(text, index):
    """Whether a document is a single word, which cannot be cut into A and B."""
    bounds = text.sentence_bounds(index)
    return len(bounds) == 2 and len(text.words_of(*bounds)) == 1


def _next_sentence_pairs(text, index, rules, balance, rng):
    bounds = _at_least_two(text, index, rng)
    room = rules.max_seq_length - 3  # [CLS] [SEP] [SEP]
    target = _target_length(room, rules.short_seq_prob, rng)
    pairs, start, last = [], 0, len(bounds) - 1
    while start < last:
        chunk = find_chunk(bounds, start, target, rng)
        split = rng.randint(chunk.start + 1, chunk.stop - 1)
        first = bounds[chunk.start], bounds[split]
        is_random = rng.random() < 0.5
        if is_random:
            second = _random_sentences(text, index, target - (first[1] - first[0]), rng)
            # The sentences that were not used go back, except after the last chunk: it was
            # widened with sentences that had their turn, and would come up for ever.
            start = chunk.stop if chunk.start < start else split
        else:
            second = bounds[split], bounds[chunk.stop]
            start = chunk.stop
        pairs.append(_pair(first, second, int(is_random), room, rng))
    return pairs


def _sentence_order_pairs(text, index, rules, balance, rng):
    bounds = _at_least_two(text, index, rng)
    room = rules.max_seq_length - 3  # [CLS] [SEP] [SEP]
    target = _target_length(room, rules.short_seq_prob, rng)
    from_the_end = rng.random() < 0.5
    if from_the_end:
        bounds = [-bound for bound in reversed(bounds)]
    pairs, start, last = [], 0, len(bounds) - 1
    while start < last:
        chunk = find_chunk(bounds, start, target, rng)
        start = chunk.stop
        inside = bounds[chunk.start : chunk.stop + 1]
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
    room = rules.max_seq_length - 2  # [CLS] [SEP]
    target = _target_length(room, rules.short_seq_prob, rng)
    pairs, start = [], 0
    while start < len(bounds) - 1:
        end = _gather(bounds, start, target, at_least=1)
        segment = _cut(bounds[start], bounds[end], bounds[end] - bounds[start] - room, rng)
        pairs.append(Pair(*segment, 0, 0, 0))
        start = end
    return pairs


_OBJECTIVES = {
    "nsp": _next_sentence_pairs,
    "sop": _sentence_order_pairs,
    "none": _single_segments,
}
OBJECTIVES = tuple(_OBJECTIVES)


def find_chunk(bounds, start, target, rng):
    """Gathers sentences from `start` to at least `target` pieces, and at least two sentences.

    When only the last sentence is left, the chunk is widened backwards over sentences that were
    used before, at least one, to a length drawn up to the target: a last chunk is of any length,
    and what it repeats stays little.

    Args:
        bounds: where each sentence begins, at last where the last ends; at least two sentences.
        start: the first sentence that was not used yet.
        target: pieces.
        rng: a `random.Random`.

    Returns:
        A range of sentence indices; it starts before `start` if the chunk was widened.
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
    """The sentence after those that reach the target, from `start` on."""
    end = bisect.bisect_left(bounds, bounds[start] + target, start)
    return min(max(end, start + at_least), len(bounds) - 1)


def _at_least_two(text, index, rng):
    """The bounds of a document's sentences; a single one is cut in two between words if it can."""
    bounds = text.sentence_bounds(index)
    if len(bounds) > 2:
        return bounds
    words = text.words_of(*bounds)
    if len(words) == 1:
        return bounds[:1]  # nothing
    return [bounds[0], int(words[rng.randint(1, len(words) - 1)]), bounds[1]]


def _target_length(room, short_seq_prob, rng):
    # Mostly full sequences; some short ones, as fine-tuning will have them. Drawn once for each
    # pass over a document, as in google-research/bert.
    return rng.randint(2, room) if rng.random() < short_seq_prob else room


def _random_sentences(text, index, target, rng):
    """Consecutive sentences of another document, to at least `target` pieces if it has them."""
    other = index
    if text.number > 1:
        other = rng.randrange(text.number - 1)
        other += other >= index  # skips `index` itself
    bounds = text.sentence_bounds(other)
    start = rng.randrange(len(bounds) - 1)
    return bounds[start], bounds[_gather(bounds, start, target, at_least=1)]


def _length_differences(bounds, room):
    """For each split of a chunk: the first segment's length in A minus the second's in A.

    Both are asked for place A, since A keeps one piece more when both must be shortened.
    """
    differences = []
    for split in bounds[1:-1]:
        first, second = split - bounds[0], bounds[-1] - split
        differences.append(_fit(first, second, room)[0] - _fit(second, first, room)[0])
    return differences


def _fit(first, second, room):
    """The two lengths after shortening the longer one until both fit.

    Of two equal ones the second gives way, as in google-research/bert.
    """
    kept = min(second, max(room // 2, room - first))
    return min(first, room - kept), kept


def _pair(first, second, label, room, rng):
    lengths = _fit(first[1] - first[0], second[1] - second[0], room)
    first, second = (
        _cut(start, end, end - start - length, rng)
        for (start, end), length in zip((first, second), lengths, strict=True)
    )
    return Pair(*first, *second, label)


def _cut(start, end, excess, rng):
    """Takes `excess` pieces away, each from a random end; nothing if it is not positive."""
    if excess <= 0:
        return start, end
    front = rng.getrandbits(excess).bit_count()  # so many of `excess` fair coins
    return start + front, end - (excess - front)
