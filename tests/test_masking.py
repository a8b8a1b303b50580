"""Masking chooses whole units, counts as Google does, never touches [CLS] or [SEP]."""

import collections
import dataclasses
import random

import pytest

from create_pretraining_data import masking
from create_pretraining_data.documents import tokenize_sentence
from create_pretraining_data.masking import (
    MaskingRules,
    choose_ngrams,
    draw_length,
    mask_sequence,
)
from create_pretraining_data.pairs import Sequence, assemble

CLS, SEP, MASK = 1, 2, 3
RULES = MaskingRules(
    masked_lm_prob=0.15,
    max_predictions_per_seq=20,
    do_whole_word_mask=True,
    ngram=1,
    favor_shorter_ngram=True,
    do_permutation=False,
    mask_id=MASK,
    vocab_size=1000,
)


def change(**values):
    return dataclasses.replace(RULES, **values)


class Syllables:
    """A tokenizer whose pieces do not say whether they begin a word."""

    def tokenize_words(self, text):
        return [list(word) for word in text.split()]

    def convert_tokens_to_ids(self, pieces):
        return [ord(piece) for piece in pieces]


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
    masked = mask_sequence(sequence, RULES, random.Random(0))
    assert len(masked.positions) == expected


def test_no_masking_without_probability():
    sequence = sequence_of_words(20, 20, pieces=1)
    masked = mask_sequence(sequence, change(masked_lm_prob=0.0), random.Random(0))
    assert masked == (sequence.ids, [], [])


@pytest.mark.parametrize("whole_words", [True, False])
@pytest.mark.parametrize("ngram", [1, 3])
@pytest.mark.parametrize("permutation", [True, False])
def test_labels_are_what_stood_there(whole_words, ngram, permutation):
    rules = change(do_whole_word_mask=whole_words, ngram=ngram, do_permutation=permutation)
    rng = random.Random(0)
    sequence = sequence_of_words(25, 25)
    for _ in range(200):
        masked = mask_sequence(sequence, rules, rng)
        assert masked.positions == sorted(set(masked.positions))
        assert masked.labels == [sequence.ids[p] for p in masked.positions]
        assert not {CLS, SEP} & set(masked.labels)
        changed = {
            p for p, (a, b) in enumerate(zip(sequence.ids, masked.ids, strict=True)) if a != b
        }
        assert changed <= set(masked.positions)


def test_the_model_never_sees_another_sequence_changed():
    sequence = sequence_of_words(25, 25)
    before = list(sequence.ids)
    mask_sequence(sequence, change(do_permutation=True), random.Random(0))
    assert sequence.ids == before


def test_a_korean_word_is_masked_whole():
    # Five words of one to five syllables; no piece has a "##".
    text = "나 는오 늘아침 에학교에 갔었습니다"
    sequence = assemble([tokenize_sentence(text, Syllables())], None, CLS, SEP)
    partly = {True: 0, False: 0}
    for whole_words in partly:
        rng = random.Random(0)
        for _ in range(300):
            rules = change(masked_lm_prob=0.4, do_whole_word_mask=whole_words)
            positions = set(mask_sequence(sequence, rules, rng).positions)
            for start, end in sequence.words:
                partly[whole_words] += 0 < len(positions & set(range(start, end))) < end - start
    assert partly[True] == 0
    assert partly[False] > 100


def test_ngrams_stay_within_their_segment():
    sequence = sequence_of_words(10, 10)
    rules = change(ngram=3, favor_shorter_ngram=False)
    rng = random.Random(0)
    seen = set()
    for _ in range(2000):
        seen.update(choose_ngrams(sequence.words, 10, 6, (), rules, rng))
    # Everything that fits into 0-9 or 10-19; longer draws are cut there.
    assert seen == {
        (first, length)
        for first in range(20)
        for length in (1, 2, 3)
        if first + length <= (10 if first < 10 else 20)
    }


def test_the_border_is_the_separator(monkeypatch):
    borders = []

    def record(units, border, *rest):
        borders.append(border)
        return choose_ngrams(units, border, *rest)

    monkeypatch.setattr(masking, "choose_ngrams", record)
    for whole_words in (True, False):
        rules = change(do_whole_word_mask=whole_words)
        mask_sequence(sequence_of_words(4, 7), rules, random.Random(0))
    one_segment = sequence_of_words(4, 7)._replace(segment_ids=[0] * 25)
    mask_sequence(one_segment, RULES, random.Random(0))
    assert borders == [4, 8, 11]


def test_ngram_weights():
    rng = random.Random(0)
    for shorter, expected in ((True, [6 / 11, 3 / 11, 2 / 11]), (False, [2 / 11, 3 / 11, 6 / 11])):
        weights = change(ngram=3, favor_shorter_ngram=shorter).ngram_weights
        counts = collections.Counter(draw_length(weights, rng) for _ in range(20000))
        assert sorted(counts) == [1, 2, 3]
        for length, share in enumerate(expected, start=1):
            spread = (share * (1 - share) / 20000) ** 0.5
            assert counts[length] / 20000 == pytest.approx(share, abs=4 * spread)


def test_a_word_that_does_not_fit_is_left_out():
    # Budget 3: words of 4 pieces never fit, those of one piece do.
    sequence = assemble(
        [tokenize_sentence("가나다라 마바사아 자 차 카타파하", Syllables())], None, CLS, SEP
    )
    rules = change(masked_lm_prob=0.19)
    for seed in range(50):
        masked = mask_sequence(sequence, rules, random.Random(seed))
        assert [chr(label) for label in masked.labels] == ["자", "차"]


def test_replacements_are_80_10_10():
    sequence = sequence_of_words(60, 60, pieces=1)
    rng = random.Random(0)
    counts, randoms = collections.Counter(), set()
    for _ in range(2000):
        masked = mask_sequence(sequence, RULES, rng)
        for position, label in zip(masked.positions, masked.labels, strict=True):
            now = masked.ids[position]
            counts["mask" if now == MASK else "keep" if now == label else "random"] += 1
            if now not in (MASK, label):
                randoms.add(now)
    total = counts.total()
    for kind, share in (("mask", 0.8), ("keep", 0.1), ("random", 0.1)):
        spread = (share * (1 - share) / total) ** 0.5
        # A random piece is the mask or the same piece in 2 of 1000 cases.
        assert counts[kind] / total == pytest.approx(share, abs=4 * spread + 0.0002)
    assert min(randoms) == 0 and max(randoms) == RULES.vocab_size - 1
    assert len(randoms) > 900


def test_permutation_moves_pieces_among_themselves():
    sequence = sequence_of_words(25, 25)
    rules = change(do_permutation=True, ngram=3)
    rng = random.Random(0)
    moved = 0
    for _ in range(100):
        masked = mask_sequence(sequence, rules, rng)
        count = round(len(sequence.ids) * 0.15)
        assert count < len(masked.positions) <= 2 * count
        permuted = [p for p in masked.positions if masked.ids[p] in sequence.ids]
        changed = [p for p in permuted if masked.ids[p] != sequence.ids[p]]
        # What trades places is a permutation of itself (random replacements have other ids).
        own = [p for p in changed if masked.ids[p] in {sequence.ids[q] for q in changed}]
        assert sorted(masked.ids[p] for p in own) == sorted(sequence.ids[p] for p in own)
        moved += len(own)
    assert moved > 500


def test_the_same_seed_masks_the_same():
    sequence = sequence_of_words(25, 25)
    rules = change(ngram=3)
    first, second, other = (mask_sequence(sequence, rules, random.Random(s)) for s in (1, 1, 2))
    assert first == second != other
