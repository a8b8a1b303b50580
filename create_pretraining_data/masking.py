"""Chooses the pieces of a sequence that the masked language model must predict.

As google-research/albert create_pretraining_data.py with its n-grams of words; the masking of
google-research/bert is its case of n-grams of length one. Two things differ: an n-gram ends at
its segment's end instead of running over [SEP], and its length is drawn from the seeded generator
instead of an unseeded one.
"""

import bisect
import dataclasses
import functools
import itertools
from typing import NamedTuple


class Masked(NamedTuple):
    """A sequence after masking, not padded."""

    ids: list[int]  # [T] the input of the model
    positions: list[int]  # [P] ascending
    labels: list[int]  # [P] the ids that stood there


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """How pieces are chosen and replaced.

    Attributes:
        masked_lm_prob: the share of a sequence's pieces, [CLS] and [SEP] counted, to predict.
        max_predictions_per_seq: the most predictions (twice that with do_permutation).
        do_whole_word_mask: units are words instead of single pieces.
        ngram: the most units in a row that are chosen at once.
        favor_shorter_ngram: lengths n are drawn with weights 1/n, else with the same reversed.
        do_permutation: as many pieces again are chosen, which trade places among themselves.
        mask_id: the id of [MASK].
        vocab_size: random pieces are drawn from 0 to vocab_size - 1.
    """

    masked_lm_prob: float
    max_predictions_per_seq: int
    do_whole_word_mask: bool
    ngram: int
    favor_shorter_ngram: bool
    do_permutation: bool
    mask_id: int
    vocab_size: int

    @functools.cached_property
    def ngram_weights(self):
        """The cumulative weights of the lengths 1 to ngram."""
        weights = [1 / n for n in range(1, self.ngram + 1)]
        return list(itertools.accumulate(weights if self.favor_shorter_ngram else weights[::-1]))


def mask_sequence(sequence, rules, rng):
    """Masks one sequence.

    Args:
        sequence: a `Sequence`.
        rules: `MaskingRules`.
        rng: a `random.Random`.

    Returns:
        `Masked`; nothing is chosen when masked_lm_prob is 0.
    """
    if rules.masked_lm_prob == 0:
        return Masked(sequence.ids, [], [])
    # Python rounds half to even, as Google's script does under Python 3.
    count = min(
        rules.max_predictions_per_seq,
        max(1, round(len(sequence.ids) * rules.masked_lm_prob)),
    )
    units = sequence.words
    if not rules.do_whole_word_mask:
        units = [(p, p + 1) for start, end in sequence.words for p in range(start, end)]
    # The first unit of the second segment.
    border = bisect.bisect_left(units, (sequence.segment_ids.count(0),))
    chosen = [
        position
        for ngram in choose_ngrams(units, border, count, set(), rules, rng)
        for position in ngram_positions(units, ngram)
    ]
    ids = list(sequence.ids)
    for position in chosen:
        ids[position] = _replacement(ids[position], rules, rng)
    if rules.do_permutation:
        ngrams = choose_ngrams(units, border, count, set(chosen), rules, rng)
        places = sorted(p for ngram in ngrams for p in ngram_positions(units, ngram))
        sources = list(places)
        rng.shuffle(sources)
        for place, source in zip(places, sources, strict=True):
            ids[place] = sequence.ids[source]
        chosen += places
    chosen.sort()
    return Masked(ids, chosen, [sequence.ids[position] for position in chosen])


class Ngram(NamedTuple):
    """Consecutive units."""

    first: int
    length: int


def choose_ngrams(units, border, count, taken, rules, rng):
    """Chooses n-grams at random that do not overlap, to at most `count` pieces.

    Args:
        units: [U] (start, end) positions, in order.
        border: the first unit of the second segment; no n-gram reaches over it.
        count: pieces; fewer are chosen only where no unit fits any more.
        taken: positions that are not to be chosen.
        rules: `MaskingRules`.
        rng: a `random.Random`.

    Returns:
        A list of `Ngram`.
    """
    chosen, taken, left = [], set(taken), count
    for first in _shuffled(len(units), rng):
        if left == 0:
            break
        segment_end = border if first < border else len(units)
        ngram = Ngram(first, min(draw_length(rules.ngram_weights, rng), segment_end - first))
        positions = ngram_positions(units, ngram)
        while len(positions) > left and ngram.length > 1:
            ngram = Ngram(first, ngram.length - 1)
            positions = ngram_positions(units, ngram)
        if len(positions) <= left and taken.isdisjoint(positions):
            chosen.append(ngram)
            taken.update(positions)
            left -= len(positions)
    return chosen


def ngram_positions(units, ngram):
    """The positions that an n-gram covers."""
    covered = units[ngram.first : ngram.first + ngram.length]
    return [position for start, end in covered for position in range(start, end)]


def draw_length(cumulative_weights, rng):
    """Draws a length of at least 1; weights as in `MaskingRules.ngram_weights`."""
    return 1 + bisect.bisect(cumulative_weights, rng.random() * cumulative_weights[-1])


def _shuffled(count, rng):
    """0 to count - 1 in random order; draws only as far as it is read."""
    order = list(range(count))
    for i in range(count):
        j = i + int(rng.random() * (count - i))
        order[i], order[j] = order[j], order[i]
        yield order[i]


def _replacement(piece, rules, rng):
    draw = rng.random()
    if draw < 0.8:  # 80 %: [MASK]
        return rules.mask_id
    if draw < 0.9:  # 10 %: as it was
        return piece
    return rng.randrange(rules.vocab_size)  # 10 %: any piece, special ones included
