"""From logits and beams to answers: against a plain implementation of Google's rules."""

import json

import numpy as np
import pytest

from finetuning.question_answering.answers import (
    Candidate,
    PredictedAnswers,
    answer_by_beams,
    answer_by_spans,
    with_threshold,
    write_answers,
)
from finetuning.question_answering.data import Question
from finetuning.question_answering.windows import ContextWindow, max_context_windows, window_places

# Pieces of two characters, so that the same text comes more than once.
CONTEXT = "가나 다라 가나 마바 사아 가나 다라 자차 카타 파하 가나 다라 "
PIECES = 12


def windows_of(question, room, doc_stride, context=PIECES):
    """Windows over a context whose piece i has the characters 3i and 3i + 1."""
    spans = np.array([(3 * i, 3 * i + 2) for i in range(context)]).reshape(-1, 2)
    starts, lengths = window_places(context, room, doc_stride)
    best = max_context_windows(starts, lengths, context)
    made = []
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        own, ids = slice(start, start + length), np.zeros(4 + length, np.int32)
        made.append(ContextWindow(question, ids, 3, spans[own], best[own] == number, 0, 0, 1))
    return made


def questions_of(*keys):
    return [Question(key, "?", CONTEXT, (), False) for key in keys]


def logits_of(windows, seed, padding=0):
    """Start and end logits of each window, numbers with few digits so that some are equal."""
    rng = np.random.default_rng(seed)
    lengths = [len(window.ids) + padding for window in windows]
    return [tuple(rng.integers(0, 50, (2, n)).astype(np.float32) / 8) for n in lengths]


def google_prefers(question, windows, logits, max_answer_length):
    """google-research/bert's loops, with all starts and ends among its n_best_size best."""
    preliminary = []
    for window, (start_logits, end_logits) in zip(windows, logits, strict=True):
        for start in range(len(window.spans)):
            for end in range(start, len(window.spans)):
                if end - start + 1 > max_answer_length or not window.is_max_context[start]:
                    continue
                scores = start_logits[3 + start], end_logits[3 + end]
                span = int(window.spans[start][0]), int(window.spans[end][1])
                text = question.context[slice(*span)]
                preliminary.append((text, *map(float, scores), span))
    preliminary.sort(key=lambda each: each[1] + each[2], reverse=True)
    found = {}
    for text, start, end, span in preliminary:
        found.setdefault(text, Candidate(text, start, end, span))
    return list(found.values())


@pytest.mark.parametrize("max_answer_length", (1, 3, 30))
@pytest.mark.parametrize("n_best_size", (1, 4, 1000))
def test_the_best_spans(max_answer_length, n_best_size):
    questions = questions_of("a", "b")
    windows = windows_of(0, 5, 2) + windows_of(1, 8, 8)
    assert len(windows) == 5 + 2
    for seed in range(5):
        logits = logits_of(windows, seed, padding=3)
        found = answer_by_spans(questions, windows, logits, n_best_size, max_answer_length)
        for question, part in zip(questions, (slice(0, 5), slice(5, 7)), strict=True):
            expected = google_prefers(question, windows[part], logits[part], max_answer_length)
            assert found.nbest[question.id] == expected[:n_best_size]
            assert found.texts[question.id] == expected[0].text
        assert found.null_odds == {}


def test_the_same_text_in_many_places():
    """However many better places it has, it is one answer; the other ones are found."""
    question = Question("a", "?", "가나 " * 60 + "다라 마바 ", (), False)
    windows = windows_of(0, 62, 62, context=62)
    start, end = np.arange(65.0)[::-1], np.zeros(65)
    found = answer_by_spans([question], windows, [(start, end)], 3, 1)
    assert [each.text for each in found.nbest["a"]] == ["가나", "다라", "마바"]


def test_no_answer_has_the_logits_of_the_first_piece():
    questions = questions_of("a", "b")
    windows = windows_of(0, 5, 5) + windows_of(1, 12, 12)
    logits = logits_of(windows, 3)
    for (start, end), (a, b) in zip(logits, ((4, 2), (1, 2), (2, 3), (90, 1)), strict=True):
        start[0], end[0] = a, b
    found = answer_by_spans(questions, windows, logits, 4, 30, version_2_with_negative=True)
    plain = answer_by_spans(questions, windows, logits, 4, 30)
    assert found.texts == plain.texts and "" not in found.texts.values()
    best = {key: nbest[0] for key, nbest in plain.nbest.items()}
    odds = {"a": 3 - best["a"].score, "b": 91 - best["b"].score}
    assert found.null_odds == pytest.approx(odds)
    assert found.nbest["b"] == [Candidate("", 90.0, 1.0), *plain.nbest["b"]]
    assert Candidate("", 1.0, 2.0) in found.nbest["a"] and len(found.nbest["a"]) == 5
    scores = [each.score for each in found.nbest["a"]]
    assert scores == sorted(scores, reverse=True)


def test_thresholds():
    answered = PredictedAnswers({"a": "x", "b": "y", "c": "z"}, {}, {"a": -1.0, "b": 0.5, "c": 2.0})
    assert with_threshold(answered, None) == answered.texts
    assert with_threshold(answered, 0.5) == {"a": "x", "b": "y", "c": ""}
    assert with_threshold(answered, 0.0) == {"a": "x", "b": "", "c": ""}
    assert with_threshold(PredictedAnswers({"a": "x"}, {}, {}), 0.0) == {"a": "x"}


def test_a_context_without_pieces():
    [question] = questions_of("a")
    windows = windows_of(0, 5, 5, context=0)
    logits = [(np.array([1.0, 0, 0, 0]), np.array([2.0, 0, 0, 0]))]
    found = answer_by_spans([question], windows, logits, 4, 30)
    assert found.texts == {"a": ""} and [each.text for each in found.nbest["a"]] == [""]
    found = answer_by_spans([question], windows, logits, 4, 30, version_2_with_negative=True)
    assert found.texts == {"a": ""} and found.null_odds["a"] > 1e5


def beams_of(starts, ends, cls_logits):
    """Beams from pairs of index and score: K starts, J ends of each."""
    starts, ends = np.array(starts, np.float32), np.array(ends, np.float32).reshape(-1, 2)
    return {
        "start_top_index": starts[:, 0].astype(np.int32),
        "start_top_log_probs": starts[:, 1],
        "end_top_index": ends[:, 0].astype(np.int32),
        "end_top_log_probs": ends[:, 1],
        "cls_logits": np.float32(cls_logits),
    }


def test_beams():
    questions = questions_of("a", "b")
    windows = windows_of(0, 12, 12) + windows_of(1, 8, 4)
    # Starts at the pieces 1, [CLS] and 2; ends after them, too far after, before, outside.
    first = [(4, -0.5), (0, -0.25), (5, -2.0)], [
        [(4, -2), (5, -1.5)], [(4, -0.1), (3, -0.1)], [(4, -0.1), (15, -0.2)],
    ]  # fmt: skip
    outputs = [
        beams_of(*first, 0.5),
        beams_of([(3, -1), (4, -4)], [[(3, -1), (4, -3)], [(4, -0.5), (7, -0.5)]], 3.0),
        beams_of([(3, -0.5), (10, -1)], [[(3, -0.5), (4, -3)], [(10, -2), (11, -9)]], -1.0),
    ]
    assert not windows[2].is_max_context[0] and windows[2].is_max_context[7]
    found = answer_by_beams(questions, windows, outputs, 20, 3)
    assert {key: [(c.text, c.score) for c in nbest] for key, nbest in found.nbest.items()} == {
        "a": [("다라 가나", -2.0), ("다라", -2.5)],
        "b": [("가나", -2.0), ("다라", -3.0), ("가나 다라", -4.0)],
    }
    assert found.texts == {"a": "다라 가나", "b": "가나"}
    assert found.null_odds == {"a": 0.5, "b": -1.0}
    assert with_threshold(found, 0.0) == {"a": "", "b": "가나"}
    assert len(answer_by_beams(questions, windows, outputs, 1, 3).nbest["b"]) == 1


def test_beams_that_hold_no_answer():
    [question] = questions_of("a")
    outputs = [beams_of([(0, -0.1), (1, -1e30)], [[(0, -1), (1, -1)]] * 2, 2.0)]
    found = answer_by_beams([question], windows_of(0, 12, 12), outputs, 20, 3)
    assert found.texts == {"a": ""} and found.null_odds == {"a": 2.0}


def test_files(tmp_path):
    candidates = [Candidate("답", 1.0, 2.0), Candidate("", 1.0, 2.0 - np.log(3))]
    answered = PredictedAnswers(
        {"가": "답", "b": "\ud800x"},
        {"가": candidates, "b": [Candidate("\ud800x", 0.0, 0.0)]},
        {"가": -1.0, "b": 1.0},
    )
    write_answers(tmp_path, answered, threshold=2.0, score_name="log_prob")
    texts = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert '"가": "답"' in texts["predictions.json"]
    read = {name.removesuffix(".json"): json.loads(text) for name, text in texts.items()}
    nbest = read.pop("nbest_predictions")
    assert read == {"predictions": answered.texts, "null_odds": answered.null_odds}
    first, second = nbest["가"]
    assert first["probability"] == pytest.approx(0.75)
    assert list(second) == ["text", "probability", "start_log_prob", "end_log_prob"]
