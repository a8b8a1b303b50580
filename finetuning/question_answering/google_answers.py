"""Chooses answers exactly as google-research/bert run_squad.py does, to compare scores.

It differs from `answers` in three ways. Spans start and end only at the n_best_size best tokens of
the row, which may be in the question or padding. The text of an answer is located by comparing its
tokens with the whole words of the context; if they do not match, because a token is [UNK] or a
character was normalized, the answer is the whole words. Scores are summed in float64.

Shapes: T tokens of a row.
"""

import bisect
import re
from collections.abc import Iterable, Sequence

from finetuning.metrics import largest
from finetuning.question_answering.answers import (
    NO_ANSWER_SCORE,
    Candidate,
    PredictedAnswers,
    SpanLogits,
    by_question,
)
from finetuning.question_answering.data import Question
from finetuning.question_answering.windows import ContextWindow
from tokenization import FullTokenizer

# The answer to a question for which no window has a span.
NOTHING_FOUND = Candidate("empty", 0.0, 0.0)

# Other spaces, such as U+00A0, are part of a word.
_WORD = re.compile(r"[^ \t\r\n\u202f]+")


def answer_as_google(
    questions: Sequence[Question],
    windows: Sequence[ContextWindow],
    outputs: Iterable[SpanLogits],
    n_best_size: int,
    max_answer_length: int,
    *,
    version_2_with_negative: bool,
    tokenizer: FullTokenizer,
) -> PredictedAnswers:
    """Computes answers from the logits of BERT's head; arguments as for `answers.answer_by_spans`.

    Google pads all rows to one length and its best tokens may be padding, so logits of shorter rows
    may give different answers. `tokenizer` is the tokenizer that the windows were made with.
    """
    answered = PredictedAnswers({}, {}, {})
    for question, group in by_question(questions, windows, outputs):
        words = list(_WORD.finditer(question.context))
        spans = []  # (score, window, first and last context token, start and end logit)
        for window, logits in group:
            spans += _spans(window, *logits, n_best_size, max_answer_length)
        null = None
        if version_2_with_negative:
            nulls = [Candidate("", float(start[0]), float(end[0])) for _, (start, end) in group]
            null = min(nulls, key=lambda candidate: candidate.score)
            spans.append((null.score, None, 0, 0, null.start_score, null.end_score))
        spans.sort(key=lambda span: -span[0])  # stable: ties keep their order
        candidates: dict[str, Candidate] = {}  # text -> `Candidate`
        for _, window, first, last, start_score, end_score in spans:
            if len(candidates) == n_best_size:
                break
            text = _text(window, first, last, words, tokenizer) if window else ""
            candidates.setdefault(text, Candidate(text, start_score, end_score))
        if null:
            candidates.setdefault("", null)
        nbest = list(candidates.values()) or [NOTHING_FOUND]
        best = nbest[0]
        if null:
            nothing = Candidate("", NO_ANSWER_SCORE, NO_ANSWER_SCORE)  # Google's program fails here
            best = next((candidate for candidate in nbest if candidate.text), nothing)
            answered.null_odds[question.id] = null.score - best.start_score - best.end_score
        answered.texts[question.id] = best.text
        answered.nbest[question.id] = nbest
    return answered


def _spans(window, start_logits, end_logits, n_best_size, max_answer_length):
    """Yields the valid spans of a window between the best starts and the best ends."""
    count = len(window.spans)
    for start in largest(start_logits, n_best_size).tolist():
        for end in largest(end_logits, n_best_size).tolist():
            first, last = start - window.first, end - window.first
            valid = 0 <= first <= last < min(count, first + max_answer_length)
            if valid and window.is_max_context[first]:
                scores = float(start_logits[start]), float(end_logits[end])
                yield sum(scores), window, first, last, *scores


def _text(window, first, last, words, tokenizer):
    """Returns the answer between two tokens of a window; `words` are matches in the context."""
    begin, end = (window.spans[piece][0] for piece in (first, last))
    before = bisect.bisect_right(words, begin, key=re.Match.start) - 1
    after = bisect.bisect_right(words, end, key=re.Match.start)
    original = " ".join(word[0] for word in words[before:after])
    ids = window.ids[window.first + first : window.first + last + 1].tolist()
    joined = " ".join(tokenizer.convert_ids_to_tokens(ids))
    predicted = " ".join(joined.replace(" ##", "").replace("##", "").split())
    return find_original_text(predicted, original, tokenizer)


def find_original_text(predicted: str, original: str, tokenizer: FullTokenizer) -> str:
    """Returns the part of the original words that was tokenized to the predicted text.

    As Google's get_final_text. `predicted` is the joined tokens, `original` the words that contain
    them, separated by single spaces. All of `original` is returned if the tokenizer changes the
    number of characters, or if the predicted text is not found.
    """
    tokenized = " ".join(tokenizer.basic_tokens(original))
    start = tokenized.find(predicted)
    # The positions of non-space characters, which correspond one to one.
    ours, theirs = (
        [place for place, character in enumerate(text) if character != " "]
        for text in (original, tokenized)
    )
    ends = start, start + len(predicted) - 1
    if start < 0 or len(ours) != len(theirs) or not set(ends) <= set(theirs):
        return original
    first, last = (ours[theirs.index(end)] for end in ends)
    return original[first : last + 1]
