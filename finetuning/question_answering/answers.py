"""Turns what a model says about windows into the answers of questions, and writes them.

Shapes: T pieces of a row, W pieces of the context in a window, L lengths of answers, N spans,
K starts and J ends of each that a beam keeps.
"""

import json
import os
from typing import NamedTuple

import numpy as np

from bert_common.atomic_write import atomic_write
from finetuning.question_answering.windows import cut_answer

# The score of both ends of an answer where no window allows any, as google-research/albert.
NO_ANSWER_SCORE = -1e6

# How many of the best spans of a question are cut out at first: several may be one text.
FIRST_LOOK = 5


class Spans(NamedTuple):
    """Answers that a window allows."""

    first: np.ndarray  # [N] integers: the first piece, counted from the window's first of context
    last: np.ndarray  # [N]: the last one
    start_score: np.ndarray  # [N]
    end_score: np.ndarray  # [N]


class Candidate(NamedTuple):
    """An answer; "" where it is that there is none."""

    text: str
    start_score: float
    end_score: float

    @property
    def score(self):
        return self.start_score + self.end_score


class Answered(NamedTuple):
    """What is answered to all questions.

    Attributes:
        texts: id -> the best answer, never "" if there is a span that could be one.
        nbest: id -> the best `Candidate`s, the best first.
        null_odds: id -> how much more likely no answer is than that one; empty if every question
            has an answer.
    """

    texts: dict
    nbest: dict
    null_odds: dict


def all_spans(window, start_logits, end_logits, max_answer_length):
    """Every span that a window allows: of a start with the most context here, not too long.

    google-research/bert looks at those of the n_best_size best starts and ends alone, so that its
    best answer scores no higher than the best of these.

    Args:
        window: a `finetuning.question_answering.windows.Window`.
        start_logits, end_logits: [T or more].
        max_answer_length: the most pieces of an answer.

    Returns:
        `Spans`.
    """
    begin, end = allowed_spans(window, max_answer_length)
    first = window.first
    return Spans(begin, end, start_logits[first + begin], end_logits[first + end])


def allowed_spans(window, max_answer_length):
    """The first and the last piece of every span that a window allows, [N] each."""
    count = len(window.spans)
    lengths = np.arange(min(max_answer_length, count))  # [L], less one
    last = np.arange(count)[:, None] + lengths  # [W, L]
    allowed = window.is_max_context[:, None] & (last < count)
    begin, size = np.nonzero(allowed)
    return begin, begin + size


def beam_spans(window, beams, max_answer_length):
    """The spans of a beam that a window allows, as google-research/albert run_squad_v2.py.

    Args:
        window: a `finetuning.question_answering.windows.Window`.
        beams: start_top_log_probs and start_top_index [K], end_top_log_probs and end_top_index
            [K * J], a dict.
        max_answer_length: the most pieces of an answer.

    Returns:
        `Spans`.
    """
    count, starts = len(window.spans), len(beams["start_top_index"])
    ends = len(beams["end_top_index"]) // starts
    begin = np.repeat(beams["start_top_index"], ends) - window.first  # [K] -> [K * J]
    end = beams["end_top_index"] - window.first
    allowed = (begin >= 0) & (begin <= end) & (end < count) & (end - begin < max_answer_length)
    allowed[allowed] = window.is_max_context[begin[allowed]]
    start_score = np.repeat(beams["start_top_log_probs"], ends)
    return Spans(
        begin[allowed], end[allowed], start_score[allowed], beams["end_top_log_probs"][allowed]
    )


def best_candidates(context, windows, spans, n_best_size):
    """The best texts of a question's windows, each once.

    Args:
        context: what the windows are cut from.
        windows: `finetuning.question_answering.windows.Window`s.
        spans: `Spans` of each.
        n_best_size: the most texts.

    Returns:
        `Candidate`s, the best first; of equal ones that of the earlier window, start and end.
    """
    columns = [np.concatenate(column) for column in zip(*spans, strict=True)]
    owner = np.repeat(np.arange(len(spans)), [len(each.first) for each in spans])
    score = columns[2] + columns[3]
    look = FIRST_LOOK * n_best_size
    while True:
        found = {}
        for i in _best(score, look):
            window = windows[owner[i]]
            text = cut_answer(context, window.spans, columns[0][i], columns[1][i])
            if text and text not in found:
                found[text] = Candidate(text, float(columns[2][i]), float(columns[3][i]))
                if len(found) == n_best_size:
                    break
        if len(found) == n_best_size or look >= len(score):
            return list(found.values())
        look *= FIRST_LOOK


def _best(score, count):
    """The numbers of the highest scores, the highest first, of equal ones the lower number."""
    if count >= len(score):
        return np.argsort(-score, kind="stable")
    # All that are at least the last of them, so that equal ones are not cut apart by chance.
    least = -np.partition(-score, count)[count]
    chosen = np.flatnonzero(score >= least)
    return chosen[np.argsort(-score[chosen], kind="stable")]


def answer_by_spans(
    questions, windows, outputs, n_best_size, max_answer_length, version_2_with_negative=False
):
    """Answers from the logits of the head of BERT, or of ALBERT's for SQuAD 1.1.

    Args:
        questions: `finetuning.question_answering.data.Question`s.
        windows: all their `finetuning.question_answering.windows.Window`s.
        outputs: for each window (start logits, end logits), arrays [T or more].
        n_best_size: how many answers each question gets at most, beside no answer.
        max_answer_length: the most pieces of an answer.
        version_2_with_negative: whether no answer, whose logits are those of [CLS], is one too.

    Returns:
        `Answered`; no answer's score is the lowest of all windows.
    """
    answered = Answered({}, {}, {})
    for question, group in by_question(questions, windows, outputs):
        spans = [all_spans(window, *logits, max_answer_length) for window, logits in group]
        nbest = best_candidates(question.context, [w for w, _ in group], spans, n_best_size)
        best = nbest[0] if nbest else Candidate("", NO_ANSWER_SCORE, NO_ANSWER_SCORE)
        if version_2_with_negative:
            nulls = [Candidate("", float(s[0]), float(e[0])) for _, (s, e) in group]
            null = min(nulls, key=lambda each: each.score)
            answered.null_odds[question.id] = null.score - best.score
            nbest = sorted([null, *nbest], key=lambda each: -each.score)
        answered.texts[question.id] = best.text
        answered.nbest[question.id] = nbest or [best]
    return answered


def answer_by_beams(questions, windows, outputs, n_best_size, max_answer_length):
    """Answers from the beams of ALBERT's head for SQuAD 2.0.

    Args:
        questions: `finetuning.question_answering.data.Question`s.
        windows: all their `finetuning.question_answering.windows.Window`s.
        outputs: for each window what `beam_spans` takes, with cls_logits, a number.
        n_best_size: how many answers each question gets at most.
        max_answer_length: the most pieces of an answer.

    Returns:
        `Answered`; the odds are the lowest cls_logits of all windows.
    """
    answered = Answered({}, {}, {})
    for question, group in by_question(questions, windows, outputs):
        spans = [beam_spans(window, beams, max_answer_length) for window, beams in group]
        nbest = best_candidates(question.context, [w for w, _ in group], spans, n_best_size)
        nbest = nbest or [Candidate("", NO_ANSWER_SCORE, NO_ANSWER_SCORE)]
        answered.texts[question.id] = nbest[0].text
        answered.nbest[question.id] = nbest
        answered.null_odds[question.id] = min(float(beams["cls_logits"]) for _, beams in group)
    return answered


def by_question(questions, windows, outputs):
    """Each question with the pairs of its windows and their outputs."""
    groups = [[] for _ in questions]
    for window, output in zip(windows, outputs, strict=True):
        groups[window.question].append((window, output))
    return zip(questions, groups, strict=True)


def with_threshold(answered, threshold):
    """The answers, "" where its odds are above the threshold.

    Args:
        answered: an `Answered`.
        threshold: a number; None: every question gets an answer.

    Returns:
        A dict from ids to texts.
    """
    if threshold is None or not answered.null_odds:
        return dict(answered.texts)
    odds = answered.null_odds
    return {key: "" if odds[key] > threshold else text for key, text in answered.texts.items()}


def write_answers(folder, answered, threshold=None, score_name="logit"):
    """Writes predictions.json, nbest_predictions.json and, if there are any, null_odds.json.

    Args:
        folder: where to.
        answered: an `Answered`.
        threshold: as for `with_threshold`.
        score_name: what the scores are: "logit", or "log_prob" of ALBERT's heads.

    Returns:
        The paths.
    """
    nbest = {}
    for key, candidates in answered.nbest.items():
        scores = np.array([each.score for each in candidates])
        weights = np.exp(scores - scores.max())
        nbest[key] = [
            {
                "text": each.text,
                "probability": float(probability),
                f"start_{score_name}": each.start_score,
                f"end_{score_name}": each.end_score,
            }
            for each, probability in zip(candidates, weights / weights.sum(), strict=True)
        ]
    contents = {"predictions": with_threshold(answered, threshold), "nbest_predictions": nbest}
    if answered.null_odds:
        contents["null_odds"] = answered.null_odds
    paths = [os.path.join(folder, f"{name}.json") for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        _write_json(path, content)
    return paths


def _write_json(path, content):
    """Readable text; a lone surrogate as JSON's own escape, which is Python's too."""
    text = json.dumps(content, indent=4, ensure_ascii=False) + "\n"
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
