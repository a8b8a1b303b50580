"""Bits per character: the examples that vocabularies share, the measures computed by hand."""

import collections
import math

import numpy as np
import pytest

from benchmarks.vocabularies import bits as measures
from benchmarks.vocabularies import text as vocabulary_text
from benchmarks.vocabularies.text import Cuts, Example, Limits, SharedSpans, Span
from bert_tf.checkpoint import save_google_checkpoint
from tests.support.tiny_models import tiny_model

SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}


class Letters:
    """A tokenizer: `size` letters are a piece; a question mark is unknown, a tilde is nothing."""

    pad_id, unk_id, cls_id, sep_id, mask_id = SPECIAL.values()
    vocab_size = 10_000

    def __init__(self, size):
        self.size = size

    def encode_with_offsets(self, text):
        places = [place for place, letter in enumerate(text) if letter != "~"]
        parts = [places[i : i + self.size] for i in range(0, len(places), self.size)]
        ids = [
            self.unk_id if "?" in [text[place] for place in part] else 100 + ord(text[part[0]])
            for part in parts
        ]
        return ids, [(part[0], part[-1] + 1) for part in parts]


ONE, TWO = Cuts(Letters(1)), Cuts(Letters(2))
BOTH = SharedSpans([ONE, TWO])
LIMIT = Limits(length=16, predictions=8)


def filled(row):
    """Positions and labels that count."""
    places = sum(row["masked_lm_weights"])
    return row["masked_lm_positions"][:places], row["masked_lm_ids"][:places]


def test_a_passage_ends_before_it_has_too_many_characters():
    found = vocabulary_text.passages([["ab", "cd", "ef"], ["gh"]], [ONE, TWO], 6)
    assert list(found) == [["ab", "cd"], ["ef"], ["gh"]]


def test_clean_places():
    places = vocabulary_text.clean_places
    assert places(((0, 1), (1, 3)), 3) == {0: 0, 1: 1, 3: 2}
    # The three jamo of a syllable; a piece of it and of a letter more; what is no piece.
    assert places(((0, 1), (0, 1), (0, 1), (1, 2)), 2) == {0: 0, 1: 3, 2: 4}
    assert places(((0, 1), (0, 2), (2, 3)), 3) == {0: 0, 2: 2, 3: 3}
    assert places(((0, 1), (2, 3)), 3) == {0: 0, 1: 1, 2: 1, 3: 2}
    # Empty spans: one at the end; one inside, where its place is not clean.
    assert places(((0, 1), (1, 2), (2, 2)), 2) == {0: 0, 1: 1, 2: 3}
    assert places(((0, 1), (1, 1), (1, 2), (2, 3)), 3) == {0: 0, 2: 3, 3: 4}
    assert places(((0, 2), (1, 1), (2, 3)), 3) == {0: 0, 2: 2, 3: 3}


def test_shared_spans():
    three = Cuts(Letters(3))
    assert BOTH["abcde"] == ((0, 2), (2, 4), (4, 5))
    assert SharedSpans([ONE, TWO, three])["abcdefgh"] == ((0, 6), (6, 8))
    assert SharedSpans([TWO, three])["abcd"] == ((0, 4),)  # nothing inside is shared
    # A span holds a piece in every vocabulary: a part without a piece in one joins its neighbour.
    assert BOTH["~a~b~c~"] == ((0, 4), (4, 7))


def test_a_row_by_hand():
    example = Example(["ab", "cdefg", "h"], [Span(0, 0, 2), Span(1, 2, 4), Span(1, 4, 5)])
    a, b, c, d, e, f, g, h = (100 + ord(letter) for letter in "abcdefgh")
    row = vocabulary_text.row(example, ONE, LIMIT)
    assert list(row["input_ids"]) == [2, 4, 4, c, d, 4, 4, 4, h, 3, *[0] * 6]
    assert list(row["input_mask"]) == [1] * 10 + [0] * 6
    assert filled(row) == ([1, 2, 5, 6, 7], [a, b, e, f, g])
    row = vocabulary_text.row(example, TWO, LIMIT)
    assert list(row["input_ids"])[:7] == [2, 4, c, 4, 4, h, 3]
    assert filled(row) == ([1, 3, 4], [a, e, g])
    assert vocabulary_text.limits_of([example, Example(["ab"], [])], TWO) == Limits(7, 3)


def test_pieces_that_were_asked_for_are_shown():
    example = Example(["abc", "d", "e"], [Span(0, 0, 3), Span(1, 0, 1)])
    a, b, c, d, e = (100 + ord(letter) for letter in "abcde")
    rows = [vocabulary_text.row(example, ONE, LIMIT, asked=k) for k in range(3)]
    assert [list(row["input_ids"])[:7] for row in rows] == [
        [2, 4, 4, 4, 4, e, 3],
        [2, a, 4, 4, d, e, 3],
        [2, a, b, 4, d, e, 3],
    ]
    assert [filled(row) for row in rows] == [([1, 4], [a, d]), ([2], [b]), ([3], [c])]


def test_bits_per_character_by_hand():
    """Every prediction has the probability 1/8 at once, 1/2 where earlier pieces are shown."""
    first = Example(["abcd", "ef"], [Span(0, 0, 4), Span(1, 0, 2)])
    examples = [first, Example(["g"], [Span(0, 0, 1)])]

    def loss_of(rows):
        total = 0.0
        for row in rows:
            length = sum(row["input_mask"])
            masks = list(row["input_ids"])[1 : length - 1].count(4)
            predictions = sum(row["masked_lm_weights"])
            total += predictions * math.log(8 if masks == length - 2 else 2)
        return total

    # 7 characters; one letter a piece: 7 predictions, the first of each span without help.
    bits = measures.measure_bits(loss_of, examples, ONE, LIMIT)
    assert bits == pytest.approx([7 * 3 / 7, (3 * 3 + 4 * 1) / 7])
    # Two letters a piece: 4 predictions of the same 7 characters.
    bits = measures.measure_bits(loss_of, examples, TWO, LIMIT)
    assert bits == pytest.approx([4 * 3 / 7, (3 * 3 + 1 * 1) / 7])


def test_bits_by_frequency_by_hand():
    found = measures.frequency_bits(collections.Counter({1: 5, 2: 2}), [1, 3], 3)
    # One more of each of the three: 6, 3, 1 of 10.
    assert found == pytest.approx(-math.log2(6 / 10) - math.log2(1 / 10))


def test_loss_of_a_checkpoint_is_the_models_own(tmp_path):
    model, checkpoint = tiny_model(vocab_size=300), tmp_path / "model.ckpt-1"
    save_google_checkpoint(model, str(checkpoint))
    examples = [
        Example(["ab", "cd", "ef"], [Span(0, 0, 2), Span(2, 0, 1)]),
        Example(["gh"], [Span(0, 0, 2)]),
        Example(["ij", "kl"], [Span(1, 0, 2)]),
    ]
    rows = [vocabulary_text.row(example, ONE, LIMIT) for example in examples]
    expected = 0.0
    for row in rows:
        batch = measures.stack([row])
        logits = np.asarray(model(batch, training=False)["masked_lm_logits"][0], np.float64)
        surprise = np.log(np.exp(logits).sum(axis=1)) - logits[range(8), batch["masked_lm_ids"][0]]
        expected += surprise[: sum(row["masked_lm_weights"])].sum()
    # Batches of two: the last one is filled up.
    loss_of = measures.checkpoint_loss(model.config, checkpoint, 2)
    assert loss_of(rows) == pytest.approx(expected, rel=1e-5)
