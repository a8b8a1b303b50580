"""Masking chooses whole units, counts as Google does, never touches [CLS] or [SEP]."""

import collections
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.masking import (
    choose_ngrams,
    find_units,
    mask_sequences,
)
from create_pretraining_data.instances.sequences import assemble
from create_pretraining_data.instances.text import tokenize_documents
from create_pretraining_data.records.metadata import _fits
from create_pretraining_data.records.record_format import MaskingRules
from run_scripts.flags.create_data import check_replacements
from tests.support.refusals import refused
from tests.support.sequences import CodePoints, Sequence, row_of, sequences_from

CLS, SEP, MASK = 1, 2, 3
RULES = MaskingRules(
    masked_lm_prob=0.15, max_predictions_per_seq=20, do_whole_word_mask=True, ngram=1,
    favor_shorter_ngram=True, do_permutation=False, mask_id=MASK, vocab_size=1000,
)  # fmt: skip


def change(**values):
    return dataclasses.replace(RULES, **values)


def keys(number, seed=0):
    return derive_keys(np.uint64(seed), np.arange(number))


def mask_many(sequence, rules, number, seed=0):
    """The same sequence, masked `number` times at once: pairs of ids with {position: label}."""
    masked = mask_sequences(sequences_from([sequence] * number), rules, keys(number, seed))
    for ids, positions, labels, count in zip(*masked, strict=True):
        assert not positions[count:].any() and not labels[count:].any()
        yield (
            ids[: len(sequence.ids)].tolist(),
            dict(zip(positions[:count].tolist(), labels[:count].tolist(), strict=True)),
        )


def one_segment(text):
    """A sequence of one segment whose pieces are syllables."""
    text = tokenize_documents([[text]], CodePoints())
    pairs = np.array([[0, len(text.ids), 0, 0, 0]])
    rules = SimpleNamespace(max_seq_length=len(text.ids) + 2, cls_id=CLS, sep_id=SEP)
    return row_of(assemble(text, pairs, rules), 0)


def sequence_of_words(words_a, words_b, pieces=2):
    """A sequence of words of `pieces` pieces each; ids from 10 up."""
    ids, words = [CLS], []
    for count in (words_a, words_b):
        for _ in range(count):
            words.append((len(ids), len(ids) + pieces))
            ids += range(10 + len(ids), 10 + len(ids) + pieces)
        ids.append(SEP)
    border = 2 + words_a * pieces
    return Sequence(ids, [0] * border + [1] * (len(ids) - border), words, 0)


@pytest.mark.parametrize(
    ("length", "expected"),
    [(5, 1), (10, 2), (30, 4), (70, 10), (110, 16), (128, 19), (203, 20)],  # half to even
)
def test_count_is_googles(length, expected):
    sequence = sequence_of_words(length - 3 - 1, 1, pieces=1)
    assert len(sequence.ids) == length
    [(_, labels)] = mask_many(sequence, RULES, 1)
    assert len(labels) == expected


def test_no_masking_without_probability():
    sequence = sequence_of_words(20, 20, pieces=1)
    assert list(mask_many(sequence, change(masked_lm_prob=0.0), 1)) == [(sequence.ids, {})]


@pytest.mark.parametrize("whole_words", [True, False])
@pytest.mark.parametrize("ngram", [1, 3])
@pytest.mark.parametrize("permutation", [True, False])
def test_labels_are_what_stood_there(whole_words, ngram, permutation):
    rules = change(do_whole_word_mask=whole_words, ngram=ngram, do_permutation=permutation)
    sequence = sequence_of_words(25, 25)
    for ids, labels in mask_many(sequence, rules, 200):
        assert list(labels) == sorted(labels)
        assert list(labels.values()) == [sequence.ids[p] for p in labels]
        assert not {CLS, SEP} & set(labels.values())
        changed = {p for p, (a, b) in enumerate(zip(sequence.ids, ids, strict=True)) if a != b}
        assert changed and changed <= set(labels)


def test_sequences_of_other_lengths_do_not_disturb_each_other():
    rows = [sequence_of_words(*shape) for shape in ((1, 1), (25, 25), (2, 40), (9, 1))]
    rows.append(one_segment("나 는오 늘아침 에학교에"))
    sequences = sequences_from(rows)
    for seed in range(100):
        masked = mask_sequences(sequences, change(ngram=3, masked_lm_prob=0.4), keys(5, seed))
        for row, positions, count in zip(rows, masked.positions, masked.counts, strict=True):
            chosen = set(positions[:count].tolist())
            assert len(chosen) == count <= min(20, max(1, round(len(row.ids) * 0.4)))
            for start, end in row.words:
                assert len(chosen & set(range(start, end))) in (0, end - start)
            assert chosen <= {p for start, end in row.words for p in range(start, end)}


def test_a_korean_word_is_masked_whole():
    # Five words of one to five syllables; no piece has a "##".
    sequence, partly = one_segment("나 는오 늘아침 에학교에 갔었습니다"), [0, 0]
    for whole_words in (False, True):
        rules = change(masked_lm_prob=0.4, do_whole_word_mask=whole_words)
        for _, labels in mask_many(sequence, rules, 300):
            for start, end in sequence.words:
                partly[whole_words] += 0 < len(set(labels) & set(range(start, end))) < end - start
    assert partly[True] == 0 and partly[False] > 100


def test_ngrams_stay_within_their_segment_and_do_not_overlap():
    sequences = sequences_from([sequence_of_words(10, 10)] * 2000)
    rules = change(ngram=3, favor_shorter_ngram=False)
    units = find_units(sequences, whole_words=True)
    taken, counts = np.zeros(units.starts.shape, bool), np.full(2000, 6)
    chosen = choose_ngrams(units, counts, taken, rules, keys(2000))
    units_of = collections.defaultdict(list)
    for row, first, length in chosen.tolist():
        units_of[row] += range(first, first + length)
    assert all(len(units) == len(set(units)) for units in units_of.values()), "they overlap"
    seen = {(first, length) for _, first, length in chosen.tolist()}
    # Everything that fits into 0-9 or 10-19; longer draws are cut there.
    assert seen == {
        (first, length)
        for first in range(20)
        for length in (1, 2, 3)
        if first + length <= (10 if first < 10 else 20)
    }


def test_units_are_words_or_pieces_without_specials():
    rows = [sequence_of_words(4, 7), sequence_of_words(1, 2), one_segment("나 는오 늘아침")]
    for whole_words in (True, False):
        units = find_units(sequences_from(rows), whole_words)
        for row, starts, ends, segment_ends, number in zip(rows, *units, strict=True):
            words = row.words
            if not whole_words:
                words = [(p, p + 1) for start, end in words for p in range(start, end)]
            assert list(zip(starts.tolist(), ends.tolist(), strict=True))[:number] == words
            first = sum(row.segment_ids[start] == 0 for start, _ in words)
            assert segment_ends[:number].tolist() == [first] * first + [number] * (number - first)


def test_a_word_that_does_not_fit_is_left_out():
    # Budget 3: words of 4 pieces never fit, those of one piece do.
    sequence = one_segment("가나다라 마바사아 자 차 카타파하")
    for _, labels in mask_many(sequence, change(masked_lm_prob=0.19), 50):
        assert [chr(label) for label in labels.values()] == ["자", "차"]


@pytest.mark.parametrize(
    ("mask", "keep", "random"), [(0.8, 0.1, 0.1), (1, 0, 0), (0.5, 0.3, 0.2), (0, 0, 1)]
)
def test_shares_of_replacements(mask, keep, random):
    """Of what stands at a prediction in two thousand sequences."""
    sequence = sequence_of_words(60, 60, pieces=1)
    rules = change(mask_replace_prob=float(mask), random_replace_prob=float(random))
    counts, randoms = collections.Counter(), set()
    for ids, labels in mask_many(sequence, rules, 2000):
        for position, label in labels.items():
            now = ids[position]
            counts["mask" if now == MASK else "keep" if now == label else "random"] += 1
            if now not in (MASK, label):
                randoms.add(now)
    total = counts.total()
    assert total > 30_000
    # Within four standard deviations of the binomial distribution; a random piece is the mask or
    # the same piece in 2 of 1000 cases.
    for kind, share in {"mask": mask, "keep": keep, "random": random}.items():
        spread = 4 * (share * (1 - share) / total) ** 0.5 + 0.002 * random
        assert counts[kind] / total == pytest.approx(share, abs=spread)
    if random:
        assert min(randoms) == 0 and max(randoms) == RULES.vocab_size - 1 and len(randoms) > 900


def test_permutation_moves_pieces_among_themselves():
    sequence = sequence_of_words(25, 25)
    rules = change(do_permutation=True, ngram=3, vocab_size=4)  # below the sequence's pieces
    moved = 0
    for ids, labels in mask_many(sequence, rules, 100):
        count = round(len(sequence.ids) * 0.15)
        assert count < len(labels) <= 2 * count
        permuted = [p for p in labels if ids[p] in sequence.ids]
        changed = [p for p in permuted if ids[p] != sequence.ids[p]]
        # What trades places is a permutation of itself (random replacements have other ids).
        own = [p for p in changed if ids[p] in {sequence.ids[q] for q in changed}]
        assert sorted(ids[p] for p in own) == sorted(sequence.ids[p] for p in own)
        moved += len(own)
    assert moved > 500


def test_masks_depend_on_a_sequences_key_alone():
    rows = [sequence_of_words(*shape) for shape in ((1, 1), (25, 25), (2, 40), (9, 1))]
    rules = change(ngram=3, masked_lm_prob=0.3, do_permutation=True)
    sequences = sequences_from(rows)
    before = sequences.ids.copy()
    together, other = (mask_sequences(sequences, rules, keys(4, seed)) for seed in (0, 1))
    assert (sequences.ids == before).all()  # the sequences themselves stay
    assert (together.ids != before).any() and (together.ids != other.ids).any()
    for index, row in enumerate(rows):
        alone = mask_sequences(sequences_from([row], before.shape[1]), rules, keys(4)[[index]])
        for part, whole in zip(alone, together, strict=True):
            assert (part[0] == whole[index]).all()


def test_rules_are_read_again_from_the_file_beside_records():
    for share, fits in ((0.0, True), (0.5, True), (1.0, True), (1.5, False)):
        values = dataclasses.asdict(change(mask_replace_prob=share, random_replace_prob=0.0))
        assert _fits(values) is fits
    assert not _fits(dataclasses.asdict(change(masked_lm_prob=1.0)))


def test_no_more_than_all_pieces_are_replaced():
    check_replacements(SimpleNamespace(mask_replace_prob=0.9, random_replace_prob=0.1))
    with refused("must add up to at most 1. Received: ", "=0.95, ", "=0.1"):
        check_replacements(SimpleNamespace(mask_replace_prob=0.95, random_replace_prob=0.1))
