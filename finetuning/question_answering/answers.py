"""Turns a model's outputs for windows into answers to questions, and writes them to files.

Shapes: T tokens (pieces) of a row, W context tokens of a window, L answer lengths, N spans,
K starts kept by a beam, J ends kept per start.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from bert_common.atomic_write import atomic_write
from finetuning.metrics import largest, softmax
from finetuning.question_answering.data import Question
from finetuning.question_answering.windows import ContextWindow, answer_span

# The start and end scores of "" if no window has a valid span, as in google-research/albert.
NO_ANSWER_SCORE = -1e6

# At first, n_best_size times this number of spans are turned into texts, as different spans may
# have the same text. If too few texts are found, the number of spans is multiplied by it again.
SPANS_PER_TEXT = 5


# The start and end logits of a window, each [T or more].
SpanLogits = tuple[np.ndarray, np.ndarray]

# A model's output for a window.
Output = TypeVar("Output")


class Spans(NamedTuple):
    """The candidate spans of a window, with their scores."""

    first: np.ndarray  # [N] integers: the first piece, counted from the context's first in the row
    last: np.ndarray  # [N] integers: the last piece, likewise
    start_score: np.ndarray  # [N]
    end_score: np.ndarray  # [N]


class Candidate(NamedTuple):
    """A candidate answer; the text "" means "no answer"."""

    text: str
    start_score: float
    end_score: float
    span: tuple[int, int] | None = None  # (first character, end) in the context

    @property
    def score(self) -> float:
        return self.start_score + self.end_score


class PredictedAnswers(NamedTuple):
    """The predicted answers to all questions."""

    texts: dict[str, str]  # id -> the best answer, "" only if there is no valid span
    nbest: dict[str, list[Candidate]]  # id -> the best `Candidate`s, the best first
    # id -> how far "no answer" outscores the best answer (beams: see `answer_by_beams`), or {}.
    null_odds: dict[str, float]


def allowed_spans(window: ContextWindow, max_answer_length: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first and last token, each [N], of every valid span of a window.

    A valid span is not too long, and this window shows the most context around its start.
    google-research/bert considers only the n_best_size best starts and ends, so its best answer
    never scores higher than the best of these spans.
    """
    count = len(window.spans)
    lengths = np.arange(min(max_answer_length, count))  # [L], each less one
    last = np.arange(count)[:, None] + lengths  # [W, L]
    allowed = window.is_max_context[:, None] & (last < count)  # [W, L]
    begin, size = np.nonzero(allowed)  # [N] each
    return begin, begin + size


def beam_spans(
    window: ContextWindow, beams: Mapping[str, np.ndarray], max_answer_length: int
) -> Spans:
    """Returns the valid spans in a window's beam, as in google-research/albert run_squad_v2.py.

    `beams` has start_top_log_probs and start_top_index [K], end_top_log_probs and end_top_index
    [K * J].
    """
    count, starts = len(window.spans), len(beams["start_top_index"])
    ends = len(beams["end_top_index"]) // starts
    begin = np.repeat(beams["start_top_index"], ends) - window.first  # [K] -> [K * J]
    end = beams["end_top_index"] - window.first
    allowed = (begin >= 0) & (begin <= end) & (end < count) & (end - begin < max_answer_length)
    allowed[allowed] = window.is_max_context[begin[allowed]]
    start_score = np.repeat(beams["start_top_log_probs"], ends)  # [K] -> [K * J]
    return Spans(
        begin[allowed], end[allowed], start_score[allowed], beams["end_top_log_probs"][allowed]
    )


def best_candidates(
    context: str, windows: Sequence[ContextWindow], spans: Sequence[Spans], n_best_size: int
) -> list[Candidate]:
    """Returns the best answers in a question's windows, each text once.

    The best come first; ties are in the order of window, start and end.
    """
    merged = Spans(*(np.concatenate(parts) for parts in zip(*spans, strict=True)))
    owner = np.repeat(np.arange(len(spans)), [len(of_window.first) for of_window in spans])
    score = merged.start_score + merged.end_score
    count = SPANS_PER_TEXT * n_best_size
    while True:
        candidates = {}  # text -> `Candidate`
        for i in largest(score, count):
            pieces = windows[owner[i]].spans
            span = answer_span(context, pieces, merged.first[i], merged.last[i])
            text = context[slice(*span)]
            if text and text not in candidates:
                scores = float(merged.start_score[i]), float(merged.end_score[i])
                candidates[text] = Candidate(text, *scores, span)
                if len(candidates) == n_best_size:
                    break
        if len(candidates) == n_best_size or count >= len(score):
            return list(candidates.values())
        count *= SPANS_PER_TEXT


def answer_by_spans(
    questions: Sequence[Question],
    windows: Sequence[ContextWindow],
    outputs: Iterable[SpanLogits],
    n_best_size: int,
    max_answer_length: int,
    *,
    version_2_with_negative: bool = False,
) -> PredictedAnswers:
    """Computes answers from the logits of a `SpanModel`.

    Args:
        windows: the windows of all questions.
        outputs: (start logits, end logits) of each window, arrays [T or more].
        n_best_size: the maximum number of candidates per question, in addition to "no answer".
        max_answer_length: the maximum number of tokens in an answer.
        version_2_with_negative: whether "no answer", scored by [CLS]'s logits, is a candidate.

    Returns:
        The answers; "no answer" has its lowest score over all windows.
    """
    answered = PredictedAnswers({}, {}, {})
    for question, group in by_question(questions, windows, outputs):
        spans = []
        for window, (starts, ends) in group:
            begin, end = allowed_spans(window, max_answer_length)  # [N] each
            scores = starts[window.first + begin], ends[window.first + end]
            spans.append(Spans(begin, end, *scores))
        nbest = best_candidates(question.context, [w for w, _ in group], spans, n_best_size)
        best = nbest[0] if nbest else Candidate("", NO_ANSWER_SCORE, NO_ANSWER_SCORE)
        if version_2_with_negative:
            nulls = [Candidate("", float(s[0]), float(e[0])) for _, (s, e) in group]
            null = min(nulls, key=lambda candidate: candidate.score)
            answered.null_odds[question.id] = null.score - best.score
            nbest = sorted([null, *nbest], key=lambda candidate: -candidate.score)
        answered.texts[question.id] = best.text
        answered.nbest[question.id] = nbest or [best]
    return answered


def answer_by_beams(
    questions: Sequence[Question],
    windows: Sequence[ContextWindow],
    outputs: Iterable[Mapping[str, np.ndarray]],
    n_best_size: int,
    max_answer_length: int,
) -> PredictedAnswers:
    """Computes answers from the beams of a `BeamSpanModel`; arguments as for `answer_by_spans`.

    Each window's output is the `beams` of `beam_spans` with a scalar cls_logits. A question's
    null_odds are its lowest cls_logits over all windows.
    """
    answered = PredictedAnswers({}, {}, {})
    for question, group in by_question(questions, windows, outputs):
        spans = [beam_spans(window, beams, max_answer_length) for window, beams in group]
        nbest = best_candidates(question.context, [w for w, _ in group], spans, n_best_size)
        nbest = nbest or [Candidate("", NO_ANSWER_SCORE, NO_ANSWER_SCORE)]
        answered.texts[question.id] = nbest[0].text
        answered.nbest[question.id] = nbest
        answered.null_odds[question.id] = min(float(beams["cls_logits"]) for _, beams in group)
    return answered


def by_question(
    questions: Sequence[Question], windows: Sequence[ContextWindow], outputs: Iterable[Output]
) -> Iterator[tuple[Question, list[tuple[ContextWindow, Output]]]]:
    """Yields each question with the (window, output) pairs of all its windows."""
    groups: list[list[tuple[ContextWindow, Output]]] = [[] for _ in questions]
    for window, output in zip(windows, outputs, strict=True):
        groups[window.question].append((window, output))
    return zip(questions, groups, strict=True)


def with_threshold(answered: PredictedAnswers, threshold: float | None) -> dict[str, str]:
    """Returns the answers, id -> text, with "" where null_odds are above the threshold.

    If the threshold is None, every question is answered.
    """
    if threshold is None or not answered.null_odds:
        return dict(answered.texts)
    odds = answered.null_odds
    return {key: "" if odds[key] > threshold else text for key, text in answered.texts.items()}


def candidate_probabilities(candidates: Sequence[Candidate]) -> np.ndarray:
    """Returns the probability of each candidate among all candidates of a question."""
    return softmax(np.array([candidate.score for candidate in candidates]))


def write_answers(
    folder: str,
    answered: PredictedAnswers,
    threshold: float | None = None,
    score_name: str = "logit",
) -> list[str]:
    """Writes predictions.json, nbest_predictions.json and, if there are odds, null_odds.json.

    `threshold` is as in `with_threshold`; `score_name` is "logit", or "log_prob" for a
    `BeamSpanModel`. Returns the paths.
    """
    nbest = {}
    for key, candidates in answered.nbest.items():
        shares = candidate_probabilities(candidates)
        nbest[key] = [
            {
                "text": candidate.text,
                "probability": float(probability),
                f"start_{score_name}": candidate.start_score,
                f"end_{score_name}": candidate.end_score,
            }
            for candidate, probability in zip(candidates, shares, strict=True)
        ]
    contents = {"predictions": with_threshold(answered, threshold), "nbest_predictions": nbest}
    if answered.null_odds:
        contents["null_odds"] = answered.null_odds
    paths = [os.path.join(folder, f"{name}.json") for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        text = json.dumps(content, indent=4, ensure_ascii=False) + "\n"
        with atomic_write(path) as file:
            # Python's escape of a lone surrogate is valid JSON too.
            file.write(text.encode("utf-8", "backslashreplace"))
    return paths
