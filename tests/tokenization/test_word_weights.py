"""Words are weighted by the spread of their stems over a text."""

import pytest

from tokenization.vocab_learning import weights
from tokenization.vocab_learning.weights import count_in_blocks, spread_weights


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr(weights, "SENTENCES_PER_BLOCK", 2)


def test_blocks_hold_each_item_once(short_blocks):
    counts, blocks = count_in_blocks([["b", "a", "b"], ["c"], ["a"], ["a"], ["c"]])
    assert dict(counts) == {"b": 2, "a": 3, "c": 2}
    assert [[list(counts)[place] for place in block] for block in blocks] == [
        ["b", "a", "c"], ["a"], ["c"],
    ]  # fmt: skip


def test_no_sentence_is_no_word():
    counts, blocks = count_in_blocks([])
    assert spread_weights(list(counts), blocks) == {}


def test_the_words_of_a_stem_share_one_in_each_block(short_blocks):
    school, in_school, tree = ("학교", "0"), ("학교에", "01"), ("나무", "0")
    counts, blocks = count_in_blocks(
        [[school, in_school, tree], [school, school], [school], [tree]]
    )
    assert spread_weights(list(counts), blocks) == {school: 1.5, in_school: 0.5, tree: 2.0}
