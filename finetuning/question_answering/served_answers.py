"""Chooses answers among spans in a graph, as `finetuning.question_answering.answers` does.

Shapes: B questions, W windows, M spans of a window, K spans of a question, N answers of a question.
"""

from typing import NamedTuple

import tensorflow as tf

from finetuning.question_answering.answers import NO_ANSWER_SCORE
from finetuning.question_answering.served_windows import Windows
from finetuning.serving.characters import Characters

NEVER = -float("inf")  # the score of a span that is not an answer
NOTHING_FOUND = 2 * NO_ANSWER_SCORE  # the best score, start + end, if there is no answer


class Candidates(NamedTuple):
    """Spans that may be answers, of windows [W, M] or of questions [B, K]."""

    first: tf.Tensor  # int64: the first token, counted from the first context token of a window
    last: tf.Tensor  # int64: the last token, likewise
    score: tf.Tensor  # float32; NEVER if the span is not allowed


def best_of_each(windows: Windows, candidates: Candidates, kept: int) -> Candidates:
    """Returns the best spans of each question, the best first; ties keep their order.

    Takes candidates [W, M] and returns candidates [B, K], K at most `kept`, whose tokens are
    counted over all contexts.
    """
    offset = windows.pieces[:, tf.newaxis]  # [W, 1]
    first, last = candidates.first + offset, candidates.last + offset
    of_window = _top(Candidates(first, last, candidates.score), kept)
    width = tf.shape(of_window.score)[1]
    rows = [
        tf.RaggedTensor.from_row_splits(values, windows.splits, validate=False).to_tensor(padding)
        for values, padding in zip(of_window, (0, 0, NEVER), strict=True)
    ]  # [B, windows, K] each
    flat = [tf.shape(rows[0])[0], tf.shape(rows[0])[1] * width]
    return _top(Candidates(*(tf.reshape(values, flat) for values in rows)), kept)


def _top(candidates, kept):
    """Returns the `Candidates` with the highest scores in each row."""
    count = tf.minimum(tf.shape(candidates.score)[1], kept)
    score, places = tf.math.top_k(candidates.score, count)
    first, last = (tf.gather(v, places, batch_dims=1) for v in (candidates.first, candidates.last))
    return Candidates(first, last, score)


def best_answers(
    contexts: tf.Tensor,
    windows: Windows,
    candidates: Candidates,
    nulls: tf.Tensor | None,
    options: tuple[int, float | None, bool],
) -> dict[str, tf.Tensor]:
    """Returns the outputs of the signature; see docs/serving.md.

    Args:
        contexts: string [B].
        candidates: [B, K], the best first.
        nulls: the score of "no answer" in each window [W], or None if there always is an answer.
        options: the maximum N; the null score difference above which the answer is "", or None;
            whether the scores are from beams, where "no answer" is not comparable to answers.
    """
    most, threshold, has_beams = options
    spans = tf.concat([windows.spans, [[0, 0]]], axis=0)  # for contexts without tokens
    valid = candidates.score > NEVER
    first, last = (tf.where(valid, p, 0) for p in (candidates.first, candidates.last))
    begins = tf.cast(tf.gather(spans[:, 0], first), tf.int64)  # [B, K]
    ends = tf.cast(tf.gather(spans[:, 1], last), tf.int64)
    characters = Characters(contexts)
    begins, ends, visible = characters.strip(tf.where(valid, begins, 0), tf.where(valid, ends, 0))
    valid &= visible
    begins, ends = tf.where(valid, begins, 0), tf.where(valid, ends, 0)
    texts = characters.cut(begins, ends)  # [B, K]
    # Keeps each text once, where it scores highest.
    earlier = tf.linalg.band_part(texts[:, :, tf.newaxis] == texts[:, tf.newaxis], -1, 0)
    earlier = tf.linalg.set_diag(earlier, tf.zeros_like(valid)) & valid[:, tf.newaxis]
    valid &= ~tf.reduce_any(earlier, axis=2)
    valid &= tf.cumsum(tf.cast(valid, tf.int32), axis=1) <= most
    chosen = tf.RaggedTensor.from_row_lengths(
        tf.where(valid), tf.reduce_sum(tf.cast(valid, tf.int64), axis=1), validate=False
    )  # [B, (N), 2]
    padding = ("", -1, -1, NEVER)
    texts, begins, ends, score = (
        chosen.with_values(tf.gather_nd(values, chosen.values)).to_tensor(fill, shape=[None, most])
        for values, fill in zip((texts, begins, ends, candidates.score), padding, strict=True)
    )  # [B, N] each
    return _with_nothing((texts, begins, ends, score), nulls, windows.splits, threshold, has_beams)


def _with_nothing(answers, nulls, splits, threshold, has_beams):
    """Returns the dict of `best_answers`, with "no answer" if the model can predict it.

    `answers` are texts, first characters, ends and scores, each [B, N], the best first; `splits`,
    int64 [B + 1], are the row splits of each question's windows.
    """
    texts, begins, ends, score = answers
    best = tf.maximum(score[:, 0], NOTHING_FOUND)  # [B]
    outputs, shares, given = {}, tf.where(score > NEVER, score, NEVER), score[:, 0] > NEVER
    if nulls is not None:
        rows = tf.RaggedTensor.from_row_splits(nulls, splits, validate=False)
        null = tf.reduce_min(rows, axis=1)  # [B]
        difference = null if has_beams else null - best
        outputs["null_score_difference"] = difference
        if threshold is not None:
            given &= difference <= threshold
        if not has_beams:
            shares = tf.concat([shares, null[:, tf.newaxis]], axis=1)  # [B, N + 1]
    highest = tf.maximum(tf.reduce_max(shares, axis=1, keepdims=True), NOTHING_FOUND)
    weights = tf.exp(shares - highest)
    weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, axis=1, keepdims=True))
    probabilities = weights[:, : tf.shape(texts)[1]]
    probability = probabilities[:, 0]
    if nulls is not None and not has_beams:  # "no answer" wins if no span is valid
        probability = tf.where(score[:, 0] > NEVER, probability, weights[:, -1])
    return {
        **outputs,
        "answer": tf.where(given, texts[:, 0], ""),
        "start": tf.cast(tf.where(given, begins[:, 0], -1), tf.int32),
        "end": tf.cast(tf.where(given, ends[:, 0], -1), tf.int32),
        "score": best,
        "probability": probability,
        "candidates": texts,
        "candidate_starts": tf.cast(begins, tf.int32),
        "candidate_ends": tf.cast(ends, tf.int32),
        "candidate_probabilities": probabilities,
    }
