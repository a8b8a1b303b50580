"""Documents are cut into sequences whose labels are right."""

import itertools
import random

import pytest

from create_pretraining_data.instances import pairs
from create_pretraining_data.instances.pairs import (
    LengthBalance,
    PairRules,
    gather_sentences,
    is_too_short_for_a_pair,
    truncated_lengths,
)
from tests.support.sequences import Sentence, make_sequences, text_of

CLS, SEP = 1, 2


def make_documents(shapes):
    """Documents whose pieces all have different ids, counting up through the corpus.

    Args:
        shapes: for each document the number of words of each sentence; words have 1 to 3 pieces.
    """
    ids = itertools.count(10)

    def sentence(words):
        lengths = [1 + word % 3 for word in range(words)]
        starts = [0, *itertools.accumulate(lengths)]
        return Sentence(list(itertools.islice(ids, starts.pop())), starts)

    return [list(map(sentence, shape)) for shape in shapes]


def rules(objective, max_seq_length=64, short_seq_prob=0.1):
    return PairRules(objective, max_seq_length, short_seq_prob, CLS, SEP)


def make_all(documents, rules, passes, seed=0, balance=None):
    rng, balance, text = random.Random(seed), balance or LengthBalance(), text_of(documents)
    return [
        (index, sequence)
        for _ in range(passes)
        for index in range(len(documents))
        for sequence in make_sequences(text, index, rules, balance, rng)
    ]


def segments(sequence):
    border = sequence.segment_ids.count(0)
    return sequence.ids[1 : border - 1], sequence.ids[border:-1]


def random_corpus(seed=3, documents=60):
    rng = random.Random(seed)
    return make_documents(
        [[rng.randint(1, 12) for _ in range(rng.randint(1, 9))] for _ in range(documents)]
    )


@pytest.mark.parametrize("objective", pairs.OBJECTIVES)
@pytest.mark.parametrize("max_seq_length", [5, 6, 17, 64])
def test_sequences_are_well_formed(objective, max_seq_length):
    documents = random_corpus()
    made = make_all(documents, rules(objective, max_seq_length), passes=3)
    starts = {s.ids[w] for d in documents for s in d for w in s.word_starts}
    assert made
    for _, (ids, segment_ids, words, label) in made:
        assert 3 <= len(ids) <= max_seq_length
        assert ids[0] == CLS and ids[-1] == SEP
        separators = [p for p, piece in enumerate(ids) if piece == SEP]
        assert len(separators) == (1 if objective == "none" else 2)
        border = separators[0] + 1
        assert segment_ids == [0] * border + [1] * (len(ids) - border)
        covered = [p for start, end in words for p in range(start, end)]
        assert covered == [p for p in range(1, len(ids)) if ids[p] != SEP]
        # A word begins where the tokenizer says, or where a segment was cut.
        for start, end in words:
            assert ids[start] in starts or ids[start - 1] in (CLS, SEP)
            assert not starts & set(ids[start + 1 : end])
        assert (label is None) == (objective == "none")
        if label is not None:
            assert separators[0] > 1 and separators[1] > separators[0] + 1


@pytest.mark.parametrize("objective", ["nsp", "sop"])
def test_labels_say_where_the_second_segment_is_from(objective):
    """The same seed makes the same sequences."""
    documents = random_corpus()
    made, again, other = (
        make_all(documents, rules(objective), passes=5, seed=seed) for seed in (1, 1, 2)
    )
    assert made == again != other
    assert {sequence.sentence_label for _, sequence in made} == {0, 1}
    for index, sequence in made:
        a, b = segments(sequence)
        own = {piece for sentence in documents[index] for piece in sentence.ids}
        assert own.issuperset(a)
        if not sequence.sentence_label:
            assert own.issuperset(b) and a[-1] < b[0]
        elif objective == "sop":
            assert own.issuperset(b) and b[-1] < a[0]
        else:
            assert own.isdisjoint(b)


def test_every_other_document_gives_random_sentences():
    documents = make_documents([[5, 5]] * 4)
    made = make_all(documents, rules("nsp"), passes=200)
    owner = {p: i for i, d in enumerate(documents) for s in d for p in s.ids}
    found = {(i, owner[segments(s)[1][0]]) for i, s in made if s.sentence_label}
    assert found == set(itertools.permutations(range(4), 2))


def test_unused_sentences_are_put_back():
    # Each chunk takes four of the sentences; the random label uses only the first ones.
    documents = make_documents([[10] * 12, [10] * 12])
    starts = {s.ids[0]: k for k, s in enumerate(documents[0])}
    rng, text = random.Random(0), text_of(documents)
    split_after = set()
    for _ in range(50):
        made = make_sequences(text, 0, rules("nsp", 64, 0.0), LengthBalance(), rng)
        previous_end = 0
        for sequence in made[:-1]:  # the last may be widened
            a, b = segments(sequence)
            first = next(k for start, k in starts.items() if start >= a[0] - 18 and start <= a[0])
            assert first == previous_end  # nothing left out, nothing twice
            own = a if sequence.sentence_label else a + b
            previous_end = 1 + max(k for start, k in starts.items() if start <= own[-1])
            split_after.add(previous_end)
    assert len(split_after) > 4


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_no_sentence_is_left_out(objective):
    documents = random_corpus()
    made, text = make_all(documents, rules(objective, 500), passes=1), text_of(documents)
    wanted = {CLS, SEP}
    for index, document in enumerate(documents):
        if objective == "none" or not is_too_short_for_a_pair(text, index):
            wanted.update(*(sentence.ids for sentence in document))
    assert {piece for _, sequence in made for piece in sequence.ids} == wanted


@pytest.mark.parametrize("objective", ["nsp", "sop"])
@pytest.mark.parametrize("shape", [[40, 40, 40], [2], [3, 3, 40], [1, 1], [30]])
def test_labels_are_fair_whatever_the_document(objective, shape):
    # Sentences longer than the target, single ones, a single one at the end: Google labels such
    # chunks 1.
    text = text_of(make_documents([shape, [4, 4]]))
    given = text, 0, rules(objective), LengthBalance(), random.Random(0)
    assert_half(pair.label for _ in range(2000) for pair in pairs.make_pairs(*given))


@pytest.mark.parametrize(("objective", "expected"), [("nsp", 0), ("sop", 0), ("none", 1)])
def test_a_document_of_one_word_makes_no_pair(objective, expected):
    text = text_of(make_documents([[1], [3, 3]]))
    made = make_sequences(text, 0, rules(objective), LengthBalance(), random.Random(0))
    assert len(made) == expected
    assert is_too_short_for_a_pair(text, 0) and not is_too_short_for_a_pair(text, 1)


def test_a_single_sentence_is_cut_between_words():
    documents = make_documents([[4]])  # pieces 10 | 11 12 | 13 14 15 | 16
    cuts = set()
    for _, sequence in make_all(documents, rules("sop"), passes=100):
        a, b = sorted(segments(sequence))
        assert a + b == list(range(10, 17))
        cuts.add(b[0])
    assert cuts == {11, 13, 16}


class Drawn:
    """Stands in for a random.Random whose `randint` is known."""

    def __init__(self, share):
        self.randint = lambda low, high: low + round(share * (high - low))


@pytest.mark.parametrize(
    ("first", "target", "share", "expected"),
    [
        (0, 2, 1.0, range(0, 2)),
        (0, 1, 1.0, range(0, 2)),  # two sentences at least
        (2, 100, 1.0, range(2, 5)),
        # Only one is left: backwards, to a length between 1 and the target.
        (4, 4, 1.0, range(3, 5)),
        (4, 5, 1.0, range(2, 5)),
        (4, 100, 1.0, range(0, 5)),
        (4, 100, 0.0, range(3, 5)),
    ],
)
def test_chunks(first, target, share, expected):
    bounds = text_of(make_documents([[1, 1, 1, 2, 1]])).sentences  # 1, 1, 1, 3, 1 pieces
    assert gather_sentences(bounds, first, target, Drawn(share)) == expected


def test_the_longer_segment_is_shortened_from_either_end():
    documents = make_documents([[60, 60]])
    fronts = set()
    for _, sequence in make_all(documents, rules("sop", 64, 0.0), passes=50):
        a, b = segments(sequence)
        assert (len(a), len(b)) == (31, 30)
        assert a == list(range(a[0], a[0] + 31)) and b == list(range(b[0], b[0] + 30))
        fronts.add(a[0])
    assert len(fronts) > 10
    documents = make_documents([[2, 60]])
    for _, sequence in make_all(documents, rules("sop", 64, 0.0), passes=20):
        assert sorted(map(len, segments(sequence))) == [3, 58]  # the short one stays whole


@pytest.mark.parametrize(("prob", "least", "most"), [(0.0, 0, 0.2), (1.0, 0.7, 1)])
def test_short_targets_come_as_often_as_asked(prob, least, most):
    made = make_all(make_documents([[3] * 60] * 2), rules("none", 64, prob), passes=30)
    short = sum(len(sequence.ids) < 55 for _, sequence in made)  # the remainders are, too
    assert least < short / len(made) <= most


def assert_half(values):
    """About half of many are true, within four standard deviations."""
    values = list(values)
    assert len(values) > 1000
    assert sum(values) / len(values) == pytest.approx(0.5, abs=2 / len(values) ** 0.5)


def test_long_first_sentences_do_not_tell_the_order():
    rng = random.Random(5)
    shapes = [
        [rng.randint(6, 12)] + [rng.randint(1, 10) for _ in range(rng.randint(2, 8))]
        for _ in range(500)
    ]
    made = make_all(make_documents(shapes), rules("sop", 64), passes=4)
    lengths = [(*map(len, segments(s)), s.sentence_label) for _, s in made]
    assert_half(label for a, b, label in lengths if a > b + 1)


class AnySplit:
    """Instead of the balance."""

    def choose(self, differences, rng):
        return rng.randrange(len(differences))


def test_the_overstepping_sentence_lies_in_either_segment():
    """Sentences have no trend here, only the last one gathered is longer."""
    rng = random.Random(5)
    documents = make_documents([[rng.randint(1, 10) for _ in range(20)] for _ in range(100)])
    made = make_all(documents, rules("sop", 32), passes=10, balance=AnySplit())
    lengths = [(*map(len, segments(s)), s.sentence_label) for _, s in made]
    assert_half((a > b) == (label == 0) for a, b, label in lengths if abs(a - b) > 1)


def test_the_balance_pays_off_what_it_can():
    for seed in range(20):
        balance, rng = LengthBalance(), random.Random(seed)
        assert balance.choose([40], rng) == 0  # no choice: the first segment is longer
        # Now a longer second segment of that size is due; another size has its own account.
        assert balance.choose([41, -42], rng) == 1
        assert balance.choose([100], rng) == 0
        assert balance.choose([100, 7, -40, -101], rng) in (1, 2, 3)
    chosen = [LengthBalance().choose([41, -42], random.Random(seed)) for seed in range(200)]
    assert 70 < sum(chosen) < 130


def test_truncation_is_equal_to_removing_one_piece_at_a_time():
    for first in range(12):
        for second in range(12):
            for room in range(20):
                a, b = first, second
                while a + b > room:
                    a, b = (a - 1, b) if a > b else (a, b - 1)
                assert truncated_lengths(first, second, room) == (a, b)
