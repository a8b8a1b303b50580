"""Chooses the pieces of sequences that the masked language model must predict.

As google-research/albert create_pretraining_data.py with its n-grams of words; the masking of
google-research/bert is its case of n-grams of length one. Two things differ: an n-gram ends at
its segment's end instead of running over [SEP], and its length is drawn from the seeded generator
instead of an unseeded one. Every sequence has a key, which decides its masks alone.

All sequences are worked on side by side: each takes its units (words or single pieces) in a random
order of its own, and in every round each sequence that has room left tries its next one.

Legend: B sequences, T tokens, U units, P predictions, C chosen pieces of all sequences.
"""

from typing import NamedTuple

import numpy as np

from create_pretraining_data.instances.counter_based_random import derive_keys, uniform


class Masked(NamedTuple):
    """Sequences after masking."""

    ids: np.ndarray  # int32 [B, T] the input of the model
    positions: np.ndarray  # int32 [B, P] ascending, 0 after the last
    labels: np.ndarray  # int32 [B, P] the ids that stood there, 0 after the last
    counts: np.ndarray  # int64 [B] predictions


# What a sequence's numbers are drawn for, each from a key of its own.
_FIRST_CHOICE, _SECOND_CHOICE, _TREATMENT, _PIECE, _SHUFFLE = range(5)


def mask_sequences(sequences, rules, keys):
    """Masks sequences.

    Args:
        sequences: `Sequences`.
        rules: `MaskingRules`.
        keys: uint64 [B], for `counter_based_random`; a sequence's masks depend on its own alone.

    Returns:
        `Masked`; nothing is chosen when masked_lm_prob is 0.
    """
    ids = sequences.ids.copy()
    chosen = np.zeros(ids.shape, bool)  # [B, T]
    if rules.masked_lm_prob > 0:
        units = find_units(sequences, rules.do_whole_word_mask)
        counts = prediction_counts(sequences.lengths, rules)
        taken = np.zeros(units.starts.shape, bool)  # [B, U]
        choose_ngrams(units, counts, taken, rules, derive_keys(keys, _FIRST_CHOICE))
        chosen = pieces_of(units, taken, ids.shape)
        ids[chosen] = _replacements(sequences.ids, chosen, rules, keys)
        if rules.do_permutation:
            first = taken.copy()
            choose_ngrams(units, counts, taken, rules, derive_keys(keys, _SECOND_CHOICE))
            moved = pieces_of(units, taken & ~first, ids.shape)
            ids[moved] = _shuffled_within_rows(sequences.ids, moved, derive_keys(keys, _SHUFFLE))
            chosen |= moved
    return Masked(ids, *_as_table(sequences.ids, chosen, rules.places))


def prediction_counts(lengths, rules):
    """How many pieces [B] are to be chosen of sequences of these lengths [B]."""
    # Rounds half to even, as Google's script does under Python 3.
    counts = np.rint(lengths * rules.masked_lm_prob).astype(np.int64)
    return np.clip(counts, 1, rules.max_predictions_per_seq)


class Units(NamedTuple):
    """What is masked at once, in the order of the text. After a sequence's last unit: anything."""

    starts: np.ndarray  # int64 [B, U] the first position
    ends: np.ndarray  # int64 [B, U] the one after the last
    segment_ends: np.ndarray  # int64 [B, U] the unit after the last one of the same segment
    numbers: np.ndarray  # int64 [B] how many


def find_units(sequences, whole_words):
    """The words of sequences, or their single pieces; [CLS] and [SEP] belong to none."""
    positions = np.arange(sequences.ids.shape[1])
    # A unit may begin after [CLS], after the first segment's [SEP], up to the last [SEP].
    last = (sequences.lengths - 1)[:, None]
    border = sequences.borders[:, None]
    inside = (positions > 0) & (positions < last) & (positions != border - 1)  # [B, T]
    begins = sequences.word_starts & inside if whole_words else inside
    numbers = begins.sum(axis=1)
    rows, found = np.nonzero(begins)
    column = np.arange(len(rows)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    starts = np.full((len(numbers), max(numbers.max(initial=0), 1) + 1), np.iinfo(np.int64).max)
    starts[rows, column] = found
    segment_limit = np.where(starts < border, border - 1, last)  # where its segment's [SEP] is
    ends = np.minimum(starts[:, 1:], segment_limit[:, :-1])  # [B, U]
    starts = starts[:, :-1]  # [B, U]
    of_first = (starts < border).sum(axis=1)[:, None]
    segment_ends = np.where(starts < border, of_first, numbers[:, None])
    return Units(starts, ends, segment_ends, numbers)


def choose_ngrams(units, counts, taken, rules, keys):
    """Chooses n-grams of units at random that do not overlap, to at most `counts` pieces.

    Args:
        units: `Units`.
        counts: [B] pieces; fewer are chosen only where no unit fits any more.
        taken: bool [B, U], the units that are not to be chosen; the chosen ones are added.
        rules: `MaskingRules`.
        keys: uint64 [B].

    Returns:
        int64 [chosen, 3]: sequence, first unit, number of units.
    """
    order_keys, length_keys = derive_keys(keys, 0), derive_keys(keys, 1)
    sort_by = uniform(order_keys[:, None], np.arange(taken.shape[1]))  # [B, U]
    sort_by[np.arange(taken.shape[1]) >= units.numbers[:, None]] = 2.0  # after all units
    order = np.argsort(sort_by, axis=1, kind="stable")
    left = np.array(counts)
    rows, chosen = np.arange(len(left)), []
    for turn in range(taken.shape[1]):
        rows = rows[(left[rows] > 0) & (turn < units.numbers[rows])]
        if not rows.size:
            break
        first = order[rows, turn]
        length = draw_lengths(rules, length_keys[rows], turn)
        length = np.minimum(length, units.segment_ends[rows, first] - first)
        start, room = units.starts[rows, first], left[rows]
        for shorter in range(rules.ngram - 1, 0, -1):
            too_long = units.ends[rows, first + length - 1] - start > room
            length = np.where(too_long & (length > shorter), shorter, length)
        size = units.ends[rows, first + length - 1] - start
        fits = size <= room
        for step in range(rules.ngram):
            fits &= ~taken[rows, np.where(step < length, first + step, first)]
        rows_now, first, length = rows[fits], first[fits], length[fits]
        for step in range(rules.ngram):
            within = step < length
            taken[rows_now[within], first[within] + step] = True
        left[rows_now] -= size[fits]
        chosen.append(np.stack([rows_now, first, length], axis=1))
    return np.concatenate(chosen) if chosen else np.zeros((0, 3), np.int64)


def draw_lengths(rules, keys, turn):
    """Draws the length of an n-gram, at least 1, for each key: that of its turn, from 0 on."""
    if rules.ngram == 1:
        return np.ones(len(keys), np.int64)
    return 1 + np.searchsorted(rules.ngram_shares[:-1], uniform(keys, turn), side="right")


def pieces_of(units, flags, shape):
    """Which pieces, bool [B, T], belong to the units that have a flag in [B, U]."""
    rows, columns = np.nonzero(flags)
    # +1 where a unit begins, -1 after it: the running sum is 1 inside.
    steps = np.zeros((shape[0], shape[1] + 1), np.int8)
    np.add.at(steps, (rows, units.starts[rows, columns]), 1)
    np.add.at(steps, (rows, units.ends[rows, columns]), -1)
    return np.cumsum(steps[:, :-1], axis=1, dtype=np.int8) > 0


def _replacements(ids, chosen, rules, keys):
    """What stands in the place of chosen pieces [C]."""
    rows, columns = np.nonzero(chosen)
    pieces = ids[rows, columns]  # [C]
    draw = uniform(derive_keys(keys, _TREATMENT)[rows], columns)
    anything = uniform(derive_keys(keys, _PIECE)[rows], columns) * rules.vocab_size
    # 80 %: [MASK]; 10 %: as it was; 10 %: any piece, special ones included.
    kept_or_any = np.where(draw < 0.9, pieces, anything.astype(pieces.dtype))
    return np.where(draw < 0.8, rules.mask_id, kept_or_any)


def _shuffled_within_rows(ids, places, keys):
    """The pieces [C] at the places, those of a sequence in another order."""
    rows, columns = np.nonzero(places)
    order = np.lexsort((uniform(keys[rows], columns), rows))
    return ids[rows, columns[order]]


def _as_table(ids, chosen, width):
    """Positions and ids [B, width] of the chosen pieces, how many [B] each sequence has."""
    counts = chosen.sum(axis=1)
    rows, columns = np.nonzero(chosen)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions, labels = np.zeros((2, len(counts), width), np.int32)
    positions[rows, place] = columns
    labels[rows, place] = ids[rows, columns]
    return positions, labels, counts
