"""Packed rows hold the sequences of ordinary records, kept separate, and are nearly full."""

import collections

import numpy as np
import pytest

from create_pretraining_data.instances.packing import MAX_SEQUENCES, pack, row_predictions
from tests.support.sequences import (
    PLACES,
    Syllables,
    all_records,
    parsed,
    settings_for,
    stored_sequences,
    syllable_documents,
)


def make(objective, packed, boundary=False, permutation=False):
    """All records of two passes as dicts of arrays, with the `CorpusStatistics`."""
    settings = settings_for(objective, packed, False, 2, boundary, do_permutation=permutation)
    records, statistics = all_records(syllable_documents(), Syllables(), settings)
    return parsed(records, settings.record_format), statistics


@pytest.mark.parametrize(
    ("objective", "boundary", "permutation"),
    (("nsp", False, False), ("sop", True, False), ("none", False, False), ("sop", True, True)),
)
def test_packed_rows_hold_the_same_sequences(objective, boundary, permutation):
    plain, statistics = make(objective, False, boundary, permutation)
    packed, of_packed = make(objective, True, boundary, permutation)
    assert stored_sequences(packed) == stored_sequences(plain)
    assert of_packed.sequences == statistics.sequences == len(plain["input_ids"])
    assert of_packed.label_ones == statistics.label_ones
    assert of_packed.examples == len(packed["input_ids"]) < 0.8 * statistics.sequences
    # No prediction was lost, none is counted twice; nothing is after a row's end.
    assert packed["masked_lm_weights"].sum() == plain["masked_lm_weights"].sum()
    assert (packed["input_mask"] == (packed["segment_index"] > 0)).all()
    assert not packed["input_ids"][packed["input_mask"] == 0].any()
    lengths = packed["input_mask"].sum(axis=1)
    assert collections.Counter(lengths.tolist()) == of_packed.lengths
    # Rows of one long sequence and rows of several short ones are not in an order.
    numbers = packed["segment_index"].max(axis=1)[: len(lengths) // 2]  # of the first pass
    assert abs(np.corrcoef(np.arange(len(numbers)), numbers)[0, 1]) < 0.2


def test_rows_keep_their_limits_and_are_full():
    rng = np.random.default_rng(0)
    # As real text has them: half of the sequences full, the others of any length.
    lengths = np.where(rng.random(2000) < 0.4, 512, rng.integers(5, 512, 2000))
    places = row_predictions(512, 0.15)
    predictions = np.maximum(np.rint(lengths * 0.15), 1).astype(int)
    rows = pack(lengths, predictions, 512, places)
    number = rows.max() + 1
    assert (np.bincount(rows, lengths) <= 512).all()
    assert (np.bincount(rows, predictions) <= places).all()
    assert np.bincount(rows).max() <= MAX_SEQUENCES
    assert lengths.sum() / (number * 512) > 0.97


@pytest.mark.parametrize(
    ("lengths", "predictions", "places", "most", "expected"),
    (
        ([5, 5, 10, 3, 2], [1, 1, 1, 1, 1], 9, 9, [[2], [0, 1], [3, 4]]),  # best fit
        ([4, 4, 2], [1, 1, 1], 9, 2, [[0, 1], [2]]),  # room for two sequences alone
        ([4, 4, 2], [1, 1, 1], 2, 9, [[0, 1], [2]]),  # places for two predictions alone
        ([5, 4, 1], [2, 2, 1], 3, 9, [[0, 2], [1]]),  # places for one of two
        ([], [], 9, 9, []),
    ),
)
def test_packing_small_rows(lengths, predictions, places, most, expected):
    rows = pack(lengths, predictions, 10, places, most)
    found = [np.flatnonzero(rows == row).tolist() for row in range(rows.max(initial=-1) + 1)]
    assert found == expected


def test_a_permuted_sequence_needs_twice_the_places():
    records, _ = make("none", True, permutation=True)
    assert records["masked_lm_weights"].sum(axis=1).max() > PLACES


def test_row_predictions():
    # 76.8 and one more for rounding; 19.2; and where nothing is masked.
    assert [row_predictions(*each) for each in ((512, 0.15), (128, 0.15), (128, 0))] == [80, 24, 8]
