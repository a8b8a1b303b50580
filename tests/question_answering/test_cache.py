"""The cache of tokenized questions: used where it fits, else written again."""

import numpy as np
import pytest

from finetuning.question_answering import cache as question_cache
from finetuning.question_answering.cache import is_cache, load_or_encode
from finetuning.question_answering.data import read_questions
from tests.support.task_data import squad_content, write_questions, write_tokenizer


@pytest.fixture
def questions(tmp_path):
    return read_questions(write_questions(tmp_path / "q.json", squad_content()), True)[0]


@pytest.fixture
def tokenizer(tmp_path):
    return write_tokenizer(tmp_path)


def assert_equal(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_kept(questions, tokenizer, tmp_path):
    path = tmp_path / "features.npz"
    made, found = load_or_encode(path, tokenizer, questions, 8)
    assert not found
    kept, found = load_or_encode(path, tokenizer, questions, 8)
    assert found
    assert_equal(kept, made)
    # Questions about one text still share its arrays, of which there would be one for each else.
    assert np.shares_memory(kept[0].context_ids, kept[3].context_ids)
    assert not np.shares_memory(kept[0].context_ids, kept[4].context_ids)


def test_an_empty_text(questions, tokenizer, tmp_path):
    path = tmp_path / "features.npz"
    questions = [questions[0]._replace(context=""), questions[1]]
    made, _ = load_or_encode(path, tokenizer, questions, 8)
    kept, found = load_or_encode(path, tokenizer, questions, 8)
    assert found and kept[0].spans.shape == (0, 2)
    assert_equal(kept, made)


OTHERS = {
    "question": lambda q, t, f: ([q[0]._replace(question="언제?"), *q[1:]], t, 8),
    "context": lambda q, t, f: ([*q[:-1], q[-1]._replace(context="끝")], t, 8),
    "fewer": lambda q, t, f: (q[:-1], t, 8),
    "length": lambda q, t, f: (q, t, 2),
    "tokenizer": lambda q, t, f: (q, write_tokenizer(f, unknown="character"), 8),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_of_others(change, questions, tokenizer, tmp_path):
    path = tmp_path / "features.npz"
    load_or_encode(path, tokenizer, questions, 8)
    others, other, length = change(questions, tokenizer, tmp_path)
    made, found = load_or_encode(path, other, others, length)
    assert not found
    expected = question_cache.encode_questions(other, others, length)
    assert_equal(made, expected)
    kept, found = load_or_encode(path, other, others, length)
    assert found
    assert_equal(kept, expected)


def flip(data):
    """One bit of the last array's numbers is another."""
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


DAMAGES = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "cut at the end": lambda data: data[:-1],
    "another file": lambda data: b"features",
    "a bit": flip,
    "an array": lambda data: b"\x93NUMPY" + data,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged(damage, questions, tokenizer, tmp_path):
    path = tmp_path / "features.npz"
    made, _ = load_or_encode(path, tokenizer, questions, 8)
    path.write_bytes(damage(path.read_bytes()))
    again, _ = load_or_encode(path, tokenizer, questions, 8)
    assert_equal(again, made)
    assert load_or_encode(path, tokenizer, questions, 8)[1]


@pytest.mark.parametrize("damage", (lambda data: data, *list(DAMAGES.values())[:2]))
def test_what_may_be_replaced(damage, questions, tokenizer, tmp_path):
    path = tmp_path / "features.npz"
    load_or_encode(path, tokenizer, questions, 8)
    path.write_bytes(damage(path.read_bytes()))
    assert is_cache(path)


def test_another_archive_is_not_replaced(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, features=np.zeros(3), fingerprint=np.array("other"))
    assert not is_cache(path)


def test_answers_are_no_part_of_it(questions, tokenizer, tmp_path):
    """The same questions without their answers have the same pieces."""
    path = tmp_path / "features.npz"
    load_or_encode(path, tokenizer, questions, 8)
    unknown = [question._replace(answers=()) for question in questions]
    assert load_or_encode(path, tokenizer, unknown, 8)[1]
