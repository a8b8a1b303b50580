"""Finds the best scores that answers could reach: the limit that pieces and windows set.

An answer is cut out between two pieces. A particle that is one piece with its noun cannot be cut
off, so that even the best answer may be longer or shorter than the true one.

Shapes: N spans, S segments of a context.
"""

import collections

import numpy as np

from finetuning.question_answering.answers import allowed_spans
from finetuning.question_answering.scores import BENCHMARKS, PUNCTUATION, gold_texts, score_text


def best_scores(questions, windows, max_answer_length, benchmark, version_2_with_negative):
    """The two best scores of each question over all answers that `answers` can give.

    The answer with the best overlap need not be an exact match, nor the other way round: each of
    the two is the most that any model reaches.

    Args:
        questions: `finetuning.question_answering.data.Question`s.
        windows: all their `finetuning.question_answering.windows.Window`s.
        max_answer_length: the most pieces of an answer.
        benchmark, version_2_with_negative: as for `scores.score_each`.

    Returns:
        Two lists of numbers of 0 to 1, in the order of the questions: exact match, and overlap.
    """
    groups = [[] for _ in questions]
    for window in windows:
        groups[window.question].append(window)
    pairs = [
        _best_of(question, group, max_answer_length, benchmark, version_2_with_negative)
        for question, group in zip(questions, groups, strict=True)
    ]
    return [exact for exact, _ in pairs], [overlap for _, overlap in pairs]


def _best_of(question, windows, max_answer_length, benchmark, version_2_with_negative):
    """The best exact match and the best overlap of a question."""
    rules = BENCHMARKS[benchmark]
    golds = gold_texts(question, rules, version_2_with_negative)
    spans = []
    for window in windows:
        first, last = allowed_spans(window, max_answer_length)
        spans.append(np.stack([window.spans[first, 0], window.spans[last, 1]], axis=1))
    spans = np.concatenate(spans)  # [N, 2]: the first character, and the one after the last
    exact = overlap = 0.0
    if version_2_with_negative or not len(spans):  # "" is an answer too
        exact, overlap = score_text("", golds, rules, version_2_with_negative)
    if not golds or not len(spans):
        return exact, overlap
    seen = {""}

    def look_at(span):
        nonlocal exact, overlap
        text = question.context[slice(*span)].strip()
        if text not in seen:
            seen.add(text)
            scores = score_text(text, golds, rules, version_2_with_negative)
            exact, overlap = max(exact, scores[0]), max(overlap, scores[1])

    for answer in question.answers:  # most can be cut out as they stand
        place = answer.start, answer.start + len(answer.text)
        look_at(spans[np.abs(spans - place).sum(axis=1).argmin()])
    if exact == overlap == 1:
        return exact, overlap
    bounds = np.max([_bounds(question.context, spans, gold, rules) for gold in golds], axis=0)
    for i in np.argsort(-bounds, kind="stable"):
        # An exact match has a full overlap, or leaves nothing of both texts.
        if bounds[i] <= overlap and (bounds[i] < 1 or exact == 1):
            break
        look_at(spans[i])
    return exact, overlap


def _bounds(context, spans, gold, rules):
    """What the scores of spans with a true answer are at most, found without cutting them out.

    The context falls into segments: words, or characters. An answer shares no more units with the
    true one than the segments that it touches have of them, and it is at least as long as the
    segments that it holds whole.

    Args:
        context: what the spans are cut from.
        spans: [N, 2].
        gold: a true answer, normalised.
        rules: `finetuning.question_answering.scores.Rules`.

    Returns:
        [N]
    """
    units = rules.units(gold)
    wanted = collections.Counter(unit.casefold() for unit in units)
    matches = list(rules.segments.finditer(context))
    shared, counts = {}, {}
    for segment in {match[0] for match in matches}:
        text = segment.casefold().translate(PUNCTUATION)
        if not segment.isalnum():
            text += " "  # what it may become
        shared[segment] = sum(min(count, text.count(unit)) for unit, count in wanted.items())
        counts[segment] = any(map(str.isalnum, rules.normalize(segment)))
    starts = np.array([match.start() for match in matches], np.int64)  # [S]
    ends = np.array([match.end() for match in matches], np.int64)
    most = _sums(shared[match[0]] for match in matches)  # [S + 1]
    least = _sums(counts[match[0]] for match in matches)
    begin, end = spans.T  # [N]
    most = most[np.searchsorted(starts, end)] - most[np.searchsorted(ends, begin, "right")]
    most = np.minimum(most, len(units))
    whole = least[np.searchsorted(ends, end, "right")] - least[np.searchsorted(starts, begin)]
    lengths = len(units) + np.maximum(most, whole)
    return np.where(lengths == 0, 1.0, 2 * most / np.maximum(lengths, 1))


def _sums(numbers):
    """0, then the sum of the first number, of the first two, and so on."""
    return np.cumsum([0, *numbers])
