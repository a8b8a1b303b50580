"""Scores of answers as the official programs count them."""

import pytest

from finetuning.question_answering.data import Answer, Question
from finetuning.question_answering.scores import (
    BENCHMARKS,
    score_answers,
    score_answers_or_none,
)


def asked(**golds):
    """Questions with their true answers."""
    return [
        Question(key, "?", "", tuple(Answer(text, 0) for text in texts), not texts)
        for key, texts in golds.items()
    ]


@pytest.mark.parametrize(
    "benchmark, text, expected",
    (
        ("squad", "The  Theatre, an A-team's!", "theatre ateams"),
        ("squad", "«The» a\tb", "« » b"),
        ("korquad", "《무한도전》의 ‘PD’ (김태호)", "무한도전 의 pd 김태호"),
        ("korquad", '1,234명, the "가"', "1234명 the 가"),
        ("klue-mrc", "《무한도전》의 (PD)  가", "《무한도전》의 pd 가"),
    ),
)
def test_what_is_compared(benchmark, text, expected):
    assert BENCHMARKS[benchmark].normalize(text) == expected


@pytest.mark.parametrize(
    "benchmark, answer, gold, expected",
    (
        ("squad", "the big cat", "a big dog", 0.5),
        ("squad", "cat cat dog", "cat", 0.5),
        ("squad", "cats", "cat", 0.0),
        ("korquad", "임종석이", "임종석", 6 / 7),
        ("korquad", "석 종 임", "임종석", 1.0),  # an order there is not
        ("korquad", "가가", "가나", 0.5),
        ("klue-mrc", "임종석이", "임종석", 6 / 7),
        ("klue-mrc", "가나 다라", "가나 마라", 0.6),  # the longest run, with its space: 3 of 5
        ("klue-mrc", "", "가", 0.0),
        ("squad", "the", "a", 0.0),
        ("squad", "-", "!", 0.0),  # nothing is left of either
        ("korquad", "-", "!", 0.0),
        ("klue-mrc", "-", "!", 1.0),
        ("klue-mrc", "가", "!", 0.0),
    ),
)
def test_overlap(benchmark, answer, gold, expected):
    scores = score_answers(asked(x=[gold]), {"x": answer}, benchmark)
    name = "rouge_w" if benchmark == "klue-mrc" else "f1"
    assert scores[name] == pytest.approx(100 * expected)


def test_the_best_of_several_answers():
    questions = asked(a=["big cat", "the cat"], b=["x y z"], c=["q"])
    scores = score_answers(questions, {"a": "Cat!", "b": "y z", "c": "none"})
    assert scores == {"exact": pytest.approx(100 / 3), "f1": pytest.approx(180 / 3)}


# Two with, three without an answer; what the official program of SQuAD 2.0 gives was computed
# with it.
QUESTIONS = asked(a=["blue whale"], b=["the", "seven"], c=[], d=[], e=[])
ANSWERS = {"a": "whale", "b": "Seven", "c": "x", "d": "", "e": "y"}
ODDS = {"a": -2.0, "b": 1.0, "c": 0.5, "d": 3.0, "e": 2.0}


def test_questions_without_an_answer():
    scores = score_answers_or_none(QUESTIONS, ANSWERS, ODDS)
    assert scores == {
        "exact": 40.0,
        "f1": pytest.approx(100 * (2 / 3 + 2) / 5),
        "total": 5,
        "HasAns_exact": 50.0,
        "HasAns_f1": pytest.approx(100 * (2 / 3 + 1) / 2),
        "HasAns_total": 2,
        "NoAns_exact": pytest.approx(100 / 3),
        "NoAns_f1": pytest.approx(100 / 3),
        "NoAns_total": 3,
        "best_exact": 60.0,
        "best_exact_thresh": 0.0,
        "best_f1": pytest.approx(100 * (3 + 2 / 3) / 5),
        "best_f1_thresh": -2.0,
    }
    assert "best_exact" not in score_answers_or_none(QUESTIONS, ANSWERS)
    assert "NoAns_exact" not in score_answers_or_none(QUESTIONS[:2], ANSWERS)
    rouge = score_answers_or_none(QUESTIONS, ANSWERS, ODDS, "klue-mrc")
    assert rouge["rouge_w"] == pytest.approx(100 * (2 / 3 + 2) / 5) and "best_rouge_w" in rouge


def test_what_is_empty_where_answers_may_be_missing():
    """A true answer of nothing but an article counts as none there is, as in SQuAD 2.0."""
    questions = asked(a=["the"], b=["cat"])
    scores = score_answers_or_none(questions, {"a": "", "b": "a"})
    assert (scores["exact"], scores["f1"]) == (50.0, 50.0)
    questions = asked(a=["!"], b=["가", "!"])
    scores = score_answers_or_none(questions, {"a": "", "b": ""}, None, "klue-mrc")
    assert scores["exact"] == 100.0  # not so there
