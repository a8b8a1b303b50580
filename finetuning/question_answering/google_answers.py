"""Chooses and cuts answers as google-research/bert run_squad.py does, to compare figures.

It differs from `answers` in three ways. Spans begin and end at the n_best_size best
pieces alone, the question's and the padding's among them. An answer is looked for among whole
words, the parts that spaces separate, by comparing texts; where they do not match, because a
piece is [UNK] or a character was changed, the whole words are the answer. Scores are summed in
float64.

Shapes: T pieces of a row.
"""

import numpy as np

from finetuning.question_answering.answers import NO_ANSWER_SCORE, Answered, Candidate, by_question

# What a question gets that no window has a span for.
NOTHING_FOUND = Candidate("empty", 0.0, 0.0)

# Others, such as U+00A0, are part of a word.
WORD_SEPARATORS = " \t\r\n\u202f"


def answer_as_google(
    questions,
    windows,
    outputs,
    n_best_size,
    max_answer_length,
    version_2_with_negative,
    tokenizer,
):
    """Answers from the logits of BERT's head.

    Args:
        questions, windows, outputs, n_best_size, max_answer_length, version_2_with_negative: as
            for `answers.answer_by_spans`. Google pads all rows to one length, and its
            best pieces may be of the padding: logits of shorter rows may give other answers.
        tokenizer: a `FullTokenizer`, which the windows were cut with.

    Returns:
        `finetuning.question_answering.answers.Answered`.
    """
    answered = Answered({}, {}, {})
    for question, group in by_question(questions, windows, outputs):
        words = Words(question.context)
        spans = []  # (score, window, first piece in the row, last piece, start, end logit)
        for window, logits in group:
            spans += _spans(window, *logits, n_best_size, max_answer_length)
        null = None
        if version_2_with_negative:
            nulls = [Candidate("", float(start[0]), float(end[0])) for _, (start, end) in group]
            null = min(nulls, key=lambda each: each.score)
            spans.append((null.score, None, 0, 0, null.start_score, null.end_score))
        spans.sort(key=lambda span: -span[0])  # of equal ones the earlier stays before
        found = {}
        for _, window, first, last, start_score, end_score in spans:
            if len(found) == n_best_size:
                break
            text = _text(window, first, last, words, tokenizer) if window else ""
            found.setdefault(text, Candidate(text, start_score, end_score))
        if null:
            found.setdefault("", null)
        nbest = list(found.values()) or [NOTHING_FOUND]
        best = nbest[0]
        if null:
            nothing = Candidate("", NO_ANSWER_SCORE, NO_ANSWER_SCORE)  # where Google's fails
            best = next((each for each in nbest if each.text), nothing)
            answered.null_odds[question.id] = null.score - best.start_score - best.end_score
        answered.texts[question.id] = best.text
        answered.nbest[question.id] = nbest
    return answered


def _spans(window, start_logits, end_logits, n_best_size, max_answer_length):
    """The spans that a window allows between the best starts and the best ends."""
    count = len(window.spans)
    for start in _best(start_logits, n_best_size):
        for end in _best(end_logits, n_best_size):
            first, last = start - window.first, end - window.first
            if (
                0 <= first <= last < min(count, first + max_answer_length)
                and (window.is_max_context[first])
            ):
                scores = float(start_logits[start]), float(end_logits[end])
                yield sum(scores), window, first, last, *scores


def _best(logits, count):
    """The places of the highest logits, the highest first, of equal ones the first."""
    return np.argsort(-logits, kind="stable")[:count].tolist()


class Words:
    """A context's words, and which of them each character is in.

    Attributes:
        words: the parts that `WORD_SEPARATORS` separate.
        at: for each character the number of its word.
    """

    def __init__(self, context):
        self.words, self.at = [], []
        inside = False
        for character in context:
            if character in WORD_SEPARATORS:
                inside = False
            elif inside:
                self.words[-1] += character
            else:
                self.words.append(character)
                inside = True
            self.at.append(len(self.words) - 1)


def _text(window, first, last, words, tokenizer):
    """The answer from a window's first to its last piece."""
    numbers = [words.at[window.spans[place][0]] for place in (first, last)]
    original = " ".join(words.words[numbers[0] : numbers[1] + 1])
    ids = window.ids[window.first + first : window.first + last + 1].tolist()
    joined = " ".join(tokenizer.convert_ids_to_tokens(ids))
    predicted = " ".join(joined.replace(" ##", "").replace("##", "").split())
    return project(predicted, original, tokenizer)


def project(predicted, original, tokenizer):
    """The part of the original words that reads as the predicted text, or all of them.

    Args:
        predicted: pieces, put together.
        original: the words that they are in, separated by a space.
        tokenizer: what made the pieces.

    Returns:
        The part of `original`; all of it where the tokenizer changes the number of characters, or
        the text is not found.
    """
    tokenized = " ".join(tokenizer.basic_tokens(original))
    start = tokenized.find(predicted)
    # Where the characters are that are no space: the i-th of one text is the i-th of the other.
    ours = [place for place, character in enumerate(original) if character != " "]
    theirs = {
        place: number
        for number, place in enumerate(
            p for p, character in enumerate(tokenized) if character != " "
        )
    }
    ends = start, start + len(predicted) - 1
    if start < 0 or len(ours) != len(theirs) or not all(end in theirs for end in ends):
        return original
    first, last = (ours[theirs[end]] for end in ends)
    return original[first : last + 1]
