"""Computes the highest scores that answers can reach, given the tokens and windows.

An answer starts and ends at token borders. A particle in the same token as its noun cannot be
separated from it, so even the best answer may be longer or shorter than the true answer.

Shapes: N spans, S segments of a context.
"""

import collections
from collections.abc import Sequence

import numpy as np

from finetuning.question_answering.answers import allowed_spans
from finetuning.question_answering.data import Question
from finetuning.question_answering.scores import BENCHMARKS, PUNCTUATION, gold_texts, score_text
from finetuning.question_answering.windows import ContextWindow


def best_scores(
    questions: Sequence[Question],
    windows: Sequence[ContextWindow],
    max_answer_length: int,
    benchmark: str,
    version_2_with_negative: bool,
) -> tuple[list[float], list[float]]:
    """Computes the best exact matches and overlaps over all answers that `answers` can return.

    The answer with the best overlap need not have the best exact match: each score, from 0 to 1, is
    the highest that any model can reach. `max_answer_length` is in tokens.
    """
    groups: list[list[ContextWindow]] = [[] for _ in questions]
    for window in windows:
        groups[window.question].append(window)
    pairs = [
        _best_of(question, group, max_answer_length, benchmark, version_2_with_negative)
        for question, group in zip(questions, groups, strict=True)
    ]
    return [exact for exact, _ in pairs], [overlap for _, overlap in pairs]


def _best_of(question, windows, max_answer_length, benchmark, version_2_with_negative):
    """Returns the best exact match and the best overlap of one question."""
    rules = BENCHMARKS[benchmark]
    golds = gold_texts(question, rules, version_2_with_negative)
    spans = []
    for window in windows:
        first, last = allowed_spans(window, max_answer_length)
        spans.append(np.stack([window.spans[first, 0], window.spans[last, 1]], axis=1))
    spans = np.concatenate(spans)  # [N, 2]: first character and end
    exact = overlap = 0.0
    if version_2_with_negative or not len(spans):  # "" is an answer too
        exact, overlap = score_text("", golds, rules, version_2_with_negative)
    if not golds or not len(spans):
        return exact, overlap
    seen = {""}

    def score_span(span):
        nonlocal exact, overlap
        text = question.context[slice(*span)].strip()
        if text not in seen:
            seen.add(text)
            scores = score_text(text, golds, rules, version_2_with_negative)
            exact, overlap = max(exact, scores[0]), max(overlap, scores[1])

    for answer in question.answers:  # most true answers are spans themselves
        ends = answer.start, answer.start + len(answer.text)
        score_span(spans[np.abs(spans - ends).sum(axis=1).argmin()])
    if exact == overlap == 1:
        return exact, overlap
    bounds = np.max([_bounds(question.context, spans, gold, rules) for gold in golds], axis=0)
    for i in np.argsort(-bounds, kind="stable"):
        # The overlap of an exact match is 1, unless both texts normalize to "".
        if bounds[i] <= overlap and (bounds[i] < 1 or exact == 1):
            break
        score_span(spans[i])
    return exact, overlap


def _bounds(context, spans, gold, rules):
    """Computes upper bounds [N] on the overlap of spans [N, 2] with a true answer, without texts.

    The context is divided into segments, words or characters. A span has no more units in common
    with the normalized true answer, `gold`, than the segments that it touches, and at least as many
    units as the segments that it contains.
    """
    units = rules.units(gold)
    wanted = collections.Counter(unit.casefold() for unit in units)
    matches = list(rules.segments.finditer(context))
    shared, counts = {}, {}
    for segment in {match[0] for match in matches}:
        text = segment.casefold().translate(PUNCTUATION)
        if not segment.isalnum():
            text += " "  # punctuation may be normalized to a space
        shared[segment] = sum(min(count, text.count(unit)) for unit, count in wanted.items())
        counts[segment] = any(map(str.isalnum, rules.normalize(segment)))
    starts = np.array([match.start() for match in matches], np.int64)  # [S]
    ends = np.array([match.end() for match in matches], np.int64)
    most = _cumulative(shared[match[0]] for match in matches)  # [S + 1]
    least = _cumulative(counts[match[0]] for match in matches)
    begin, end = spans.T  # [N] each
    most = most[np.searchsorted(starts, end)] - most[np.searchsorted(ends, begin, "right")]  # [N]
    most = np.minimum(most, len(units))
    whole = least[np.searchsorted(ends, end, "right")] - least[np.searchsorted(starts, begin)]
    lengths = len(units) + np.maximum(most, whole)
    return np.where(lengths == 0, 1.0, 2 * most / np.maximum(lengths, 1))


def _cumulative(numbers):
    """Returns the sums of the first 0, 1, 2, ... numbers."""
    return np.cumsum([0, *numbers])
