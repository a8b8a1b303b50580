"""The best reachable scores: compared with those of every possible answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finetuning.question_answering.answers import answer_by_spans
from finetuning.question_answering.data import Answer, Question
from finetuning.question_answering.scores import BENCHMARKS, score_each
from finetuning.question_answering.upper_bound import best_scores
from finetuning.question_answering.windows import EncodedQuestion, answer_span, make_windows


class Ids:
    cls_id, sep_id = 1, 2


def windows_of(context, ends, length, doc_stride):
    """The windows of a context that is cut into pieces, spaces left out at their ends."""
    pieces = []
    for start, end in zip([0, *ends], [*ends, len(context)], strict=True):
        text = context[start:end]
        start += len(text) - len(text.lstrip())
        pieces.append((start, start + len(text.strip())))
    spans = np.array([span for span in pieces if span[0] < span[1]], np.int32).reshape(-1, 2)
    encoded = EncodedQuestion(np.zeros(0, np.int32), np.zeros(len(spans), np.int32), spans)
    question = Question("x", "", context, (), False)
    return make_windows([question], [encoded], Ids, length + 3, doc_stride)[0]


def tried(question, windows, longest, benchmark, null):
    """The best scores, by trying all answers."""
    texts = {
        question.context[slice(*answer_span(question.context, window.spans, first, last))]
        for window in windows
        for first in np.flatnonzero(window.is_max_context)
        for last in range(first, min(first + longest, len(window.spans)))
    } - {""}
    scores = [
        [found["x"] for found in score_each([question], {"x": text}, benchmark, null)]
        for text in {*texts, *([""] if null or not texts else [])}
    ]
    return [max(column) for column in zip(*scores, strict=True)]


ALPHABETS = (
    ["가", "나", " "],
    ["가", "나", "-", "'", "《", "。", " ", "  ", "\n"],
    ["a", "n", "th", "e", "c", "C", "-", " ", " "],
    ["ΑΣ", "Σ", "ς", "İ", "ß", "1", " "],
)


@st.composite
def cases(draw):
    parts = st.sampled_from(draw(st.sampled_from(ALPHABETS)))
    context = "".join(draw(st.lists(parts, max_size=16)))
    places = st.integers(0, len(context))
    golds = []
    for _ in range(draw(st.integers(0, 2))):
        start = draw(places)
        end = draw(st.integers(start, min(len(context), start + 5)))
        if context[start:end].strip():  # at its place or not: where it is looked for first
            golds.append(Answer(context[start:end], draw(places)))
    ends = sorted(draw(st.sets(places, max_size=6)))
    windows = windows_of(context, ends, draw(st.integers(1, 7)), draw(st.integers(1, 5)))
    question = Question("x", "", context, tuple(golds), not golds)
    return question, windows, draw(st.integers(1, 6))


@pytest.mark.parametrize("null", (pytest.param(False, marks=pytest.mark.slow), True))
@pytest.mark.parametrize("benchmark", BENCHMARKS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(case=cases())
def test_the_best_of_all_answers(benchmark, null, case):
    question, windows, longest = case
    ((exact,), (overlap,)) = best_scores([question], windows, longest, benchmark, null)
    assert [exact, overlap] == tried(question, windows, longest, benchmark, null)


def test_a_shorter_answer_may_be_nearer():
    """김철수에게 is two pieces, the border inside the name: the first alone is nearer."""
    context = "김철수에게 갔다"
    question = Question("x", "", context, (Answer("김철수", 0),), False)
    windows = windows_of(context, [2], 9, 9)
    ((exact,), (overlap,)) = best_scores([question], windows, 30, "korquad", False)
    assert (exact, overlap) == (0.0, pytest.approx(2 * 2 / (2 + 3)))
    # No logits lead to more.
    for seed in range(20):
        logits = np.random.default_rng(seed).normal(size=(2, len(windows[0].ids)))
        answered = answer_by_spans([question], windows, [tuple(logits)], 20, 30)
        _, found = score_each([question], answered.texts, "korquad", False)
        assert found["x"] <= overlap


def test_several_questions_and_no_answer():
    questions = [
        Question("a", "", "서울 부산", (Answer("서울", 0), Answer("부산", 3)), False),
        Question("b", "", "서울 부산", (), True),
    ]
    windows = windows_of("서울 부산", [3], 9, 9)
    windows += [window._replace(question=1) for window in windows]
    assert best_scores(questions, windows, 1, "squad", True) == ([1.0, 1.0], [1.0, 1.0])
    empty = windows_of("", [], 9, 9)
    question = Question("a", "", "", (), False)
    assert best_scores([question], empty, 1, "squad", False) == ([0.0], [0.0])


@pytest.mark.parametrize(
    "benchmark, context, ends, gold",
    (
        # What the nearest piece gives is less than what the other one does, but for the space, the
        # punctuation, the article.
        ("klue-mrc", "가\n나다 X 가 나다라", [4, 7], "가 나"),
        ("squad", "ca-t dog cat dog", [4, 8], "cat"),
        ("squad", "p q r s then p q r s z", [11, 12], "p q r s"),
    ),
)
def test_what_becomes_of_a_segment_is_allowed_for(benchmark, context, ends, gold):
    windows = windows_of(context, ends, 9, 9)
    question = Question("x", "", context, (Answer(gold, ends[1]),), False)
    ((exact,), (overlap,)) = best_scores([question], windows, 1, benchmark, False)
    assert [exact, overlap] == tried(question, windows, 1, benchmark, False)
    scores = score_each([question], {"x": context[: ends[0]]}, benchmark, False)
    assert [found["x"] for found in scores] == [exact, overlap]
