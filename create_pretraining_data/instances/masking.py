"""Chooses the tokens that the masked language model must predict.

This follows google-research/albert create_pretraining_data.py, with its n-grams of words; the
masking of google-research/bert is the special case of n-grams of length one. Two things differ: an
n-gram ends with its segment instead of running over [SEP], and its length is drawn from a seeded
generator. The masks of a sequence depend only on its key.

All sequences are processed in parallel: in every round, each sequence that still needs predictions
tries the next of its units (words or single tokens), which are in a random order.

Shapes: B sequences, T tokens, U units, P predictions, C chosen tokens of all sequences.
"""

from typing import NamedTuple

import numpy as np

from create_pretraining_data.instances.counter_based_random import derive_keys, uniform
from create_pretraining_data.instances.sequences import Sequences
from create_pretraining_data.records.record_format import MaskingRules


class MaskedSequences(NamedTuple):
    """Holds sequences after masking."""

    ids: np.ndarray  # int32 [B, T] the model's input
    positions: np.ndarray  # int32 [B, P] of the predictions, ascending, padded with 0
    labels: np.ndarray  # int32 [B, P] the original ids there, padded with 0
    counts: np.ndarray  # int64 [B] the number of predictions


# The purposes of random numbers, each with a separate key.
_FIRST_CHOICE, _SECOND_CHOICE, _TREATMENT, _PIECE, _SHUFFLE = range(5)


def mask_sequences(sequences: Sequences, rules: MaskingRules, keys: np.ndarray) -> MaskedSequences:
    """Masks `Sequences` by `MaskingRules`; returns `MaskedSequences`.

    The `keys`, uint64 [B] for `counter_based_random`, determine the masks of each sequence. There
    are no predictions if masked_lm_prob is 0.
    """
    ids = sequences.ids.copy()
    chosen = np.zeros(ids.shape, bool)  # [B, T]
    if rules.masked_lm_prob > 0:
        units = find_units(sequences, rules.do_whole_word_mask)
        counts = prediction_counts(sequences.lengths, rules)
        taken = np.zeros(units.starts.shape, bool)  # [B, U]
        choose_ngrams(units, counts, taken, rules, derive_keys(keys, _FIRST_CHOICE))
        chosen = positions_of_units(units, taken, ids.shape)
        ids[chosen] = _replacements(sequences.ids, chosen, rules, keys)
        if rules.do_permutation:
            first = taken.copy()
            choose_ngrams(units, counts, taken, rules, derive_keys(keys, _SECOND_CHOICE))
            moved = positions_of_units(units, taken & ~first, ids.shape)
            ids[moved] = _shuffled_within_rows(sequences.ids, moved, derive_keys(keys, _SHUFFLE))
            chosen |= moved
    return MaskedSequences(ids, *_list_chosen(sequences.ids, chosen, rules.max_predictions))


def prediction_counts(lengths: np.ndarray, rules: MaskingRules) -> np.ndarray:
    """Returns how many tokens [B] to choose in sequences of the given lengths [B]."""
    # Rounds half to even, as Google's script does under Python 3.
    counts = np.rint(lengths * rules.masked_lm_prob).astype(np.int64)
    return np.clip(counts, 1, rules.max_predictions_per_seq)


class Units(NamedTuple):
    """Holds units, masked as a whole, in text order; values after the last unit are unused."""

    starts: np.ndarray  # int64 [B, U] the first position
    ends: np.ndarray  # int64 [B, U] the position after the last
    segment_ends: np.ndarray  # int64 [B, U] the unit after the last one of the same segment
    numbers: np.ndarray  # int64 [B] the number of units


def find_units(sequences: Sequences, whole_words: bool) -> Units:
    """Finds the words or single tokens of sequences; [CLS] and [SEP] belong to no unit."""
    positions = np.arange(sequences.ids.shape[1])
    # A unit may begin after [CLS], after the first segment's [SEP], up to the last [SEP].
    last = (sequences.lengths - 1)[:, None]
    border = sequences.borders[:, None]
    inside = (positions > 0) & (positions < last) & (positions != border - 1)  # [B, T]
    begins = sequences.word_starts & inside if whole_words else inside
    numbers = begins.sum(axis=1)
    rows, first_positions = np.nonzero(begins)
    column = np.arange(len(rows)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    starts = np.full((len(numbers), max(numbers.max(initial=0), 1) + 1), np.iinfo(np.int64).max)
    starts[rows, column] = first_positions
    segment_limit = np.where(starts < border, border - 1, last)  # the position of its [SEP]
    ends = np.minimum(starts[:, 1:], segment_limit[:, :-1])  # [B, U]
    starts = starts[:, :-1]  # [B, U]
    in_first_segment = (starts < border).sum(axis=1)[:, None]  # [B, 1]
    segment_ends = np.where(starts < border, in_first_segment, numbers[:, None])  # [B, U]
    return Units(starts, ends, segment_ends, numbers)


def choose_ngrams(
    units: Units, counts: np.ndarray, taken: np.ndarray, rules: MaskingRules, keys: np.ndarray
) -> np.ndarray:
    """Chooses random, non-overlapping n-grams of units, up to `counts` [B] tokens.

    Fewer are chosen only if no further unit fits. `taken`, bool [B, U], marks the units that must
    not be chosen; the chosen ones are added to it. The keys are uint64 [B].

    Returns:
        int64 [n-grams, 3]: the sequence, first unit and number of units of each n-gram.
    """
    order_keys, length_keys = derive_keys(keys, 0), derive_keys(keys, 1)
    sort_by = uniform(order_keys[:, None], np.arange(taken.shape[1]))  # [B, U]
    sort_by[np.arange(taken.shape[1]) >= units.numbers[:, None]] = 2.0  # unused values last
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
        chosen.append((rows_now, first, length))
    columns = [np.concatenate(column) for column in zip(*chosen, strict=True)]
    return np.stack(columns, axis=1) if columns else np.zeros((0, 3), np.int64)


def draw_lengths(rules: MaskingRules, keys: np.ndarray, turn: int) -> np.ndarray:
    """Draws an n-gram length for each key; `turn` is the number of the draw, from 0."""
    if rules.ngram == 1:
        return np.ones(len(keys), np.int64)
    return 1 + np.searchsorted(rules.ngram_cdf[:-1], uniform(keys, turn), side="right")


def positions_of_units(units: Units, flags: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Expands flags of units [B, U] to flags of their positions, bool [B, T]."""
    rows, columns = np.nonzero(flags)
    # +1 where a unit begins and -1 after it, so that the running sum is 1 inside a unit. No two
    # units begin, or end, at the same position.
    steps = np.zeros((shape[0], shape[1] + 1), np.int8)
    steps[rows, units.starts[rows, columns]] += 1
    steps[rows, units.ends[rows, columns]] -= 1
    return np.cumsum(steps[:, :-1], axis=1, dtype=np.int8) > 0


def _replacements(ids, chosen, rules, keys):
    """Returns the ids [C] that replace the chosen tokens."""
    rows, columns = np.nonzero(chosen)
    pieces = ids[rows, columns]  # [C]
    draw = uniform(derive_keys(keys, _TREATMENT)[rows], columns)
    anything = uniform(derive_keys(keys, _PIECE)[rows], columns) * rules.vocab_size
    # By default 80 % become [MASK], 10 % stay, 10 % become any token, even a special one.
    is_kept = draw < 1 - rules.random_replace_prob
    kept_or_any = np.where(is_kept, pieces, anything.astype(pieces.dtype))
    return np.where(draw < rules.mask_replace_prob, rules.mask_id, kept_or_any)


def _shuffled_within_rows(ids, places, keys):
    """Returns the ids [C] at the flagged positions, shuffled within each sequence."""
    rows, columns = np.nonzero(places)
    order = np.lexsort((uniform(keys[rows], columns), rows))
    return ids[rows, columns[order]]


def _list_chosen(ids, chosen, width):
    """Returns the positions and ids [B, width] of the chosen tokens, and their counts [B]."""
    counts = chosen.sum(axis=1)
    rows, columns = np.nonzero(chosen)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions, labels = np.zeros((2, len(counts), width), np.int32)
    positions[rows, place] = columns
    labels[rows, place] = ids[rows, columns]
    return positions, labels, counts
