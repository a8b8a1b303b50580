"""Scores answers as the official programs of SQuAD 1.1, SQuAD 2.0, KorQuAD 1.0 and KLUE-MRC do."""

import collections
import difflib
import re
import string
from collections.abc import Callable
from typing import NamedTuple

from bert_common.errors import InputError

PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")

# What KorQuAD's program takes for a space before it drops punctuation.
_KORQUAD_SPACES = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))

# KLUE's program means a set of characters like KorQuAD's, but has its bracket closed too early.
_KLUE_SPACES = re.compile(r"['\"《》<>〈〉]\(\)‘’")


def normalize_squad(text):
    """Lower case, without punctuation, the articles a, an, the, and more than single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def normalize_korquad(text):
    """Lower case, without punctuation; quotes and some brackets are spaces."""
    return " ".join(text.translate(_KORQUAD_SPACES).lower().translate(PUNCTUATION).split())


def normalize_klue(text):
    """Lower case, without punctuation."""
    return " ".join(_KLUE_SPACES.sub(" ", text.lower()).translate(PUNCTUATION).split())


def word_f1(answer, gold):
    """F1 of the words that two normalised texts share."""
    return _f1(answer.split(), gold.split())


def without_spaces(text):
    """The characters that KorQuAD's program counts."""
    return text.replace(" ", "")


def character_f1(answer, gold):
    """F1 of the characters that two normalised texts share, spaces aside."""
    return _f1(without_spaces(answer), without_spaces(gold))


def _f1(answer, gold):
    same = sum((collections.Counter(answer) & collections.Counter(gold)).values())
    return _harmonic(same, len(answer), len(gold))


def rouge_w(answer, gold):
    """F1 of the longest run of characters that two normalised texts share."""
    match = difflib.SequenceMatcher(None, answer, gold).find_longest_match(
        0, len(answer), 0, len(gold)
    )
    return _harmonic(match.size, len(answer), len(gold))


def _harmonic(same, of_answer, of_gold):
    if same == 0:
        return 0.0
    precision, recall = same / of_answer, same / of_gold
    return 2 * precision * recall / (precision + recall)


class Rules(NamedTuple):
    """How a benchmark compares two texts."""

    normalize: Callable
    overlap: Callable  # of two normalised texts, 0 to 1
    overlap_name: str
    drops_empty: bool  # whether a true answer that normalises to nothing does not count
    units: Callable  # what overlaps: the words, or the characters, of a normalised text
    segments: re.Pattern  # the parts of a text that none of them reaches beyond


_WORDS, _CHARACTERS = re.compile(r"\S+"), re.compile(".", re.DOTALL)

BENCHMARKS = {
    "squad": Rules(normalize_squad, word_f1, "f1", True, str.split, _WORDS),
    "korquad": Rules(normalize_korquad, character_f1, "f1", False, without_spaces, _CHARACTERS),
    "klue-mrc": Rules(normalize_klue, rouge_w, "rouge_w", False, str, _CHARACTERS),
}


def score_each(questions, answers, benchmark, version_2_with_negative):
    """Two scores of every question, each the best over its true answers.

    Args:
        questions: `finetuning.question_answering.data.Question`s.
        answers: a dict from ids to texts.
        benchmark: a key of `BENCHMARKS`.
        version_2_with_negative: whether "" is the true answer of questions that have none, and
            overlaps with itself.

    Returns:
        Two dicts from ids to numbers of 0 to 1: exact match, and overlap.

    Raises:
        InputError: a question that is not answered.
    """
    rules = BENCHMARKS[benchmark]
    missing = [question.id for question in questions if question.id not in answers]
    if missing:
        raise InputError(
            f'every question must be answered, if only by "". Received: no answer to '
            f"{len(missing)}, such as {missing[0]}"
        )
    exact, overlap = {}, {}
    for question in questions:
        exact[question.id], overlap[question.id] = score_text(
            answers[question.id],
            gold_texts(question, rules, version_2_with_negative),
            rules,
            version_2_with_negative,
        )
    return exact, overlap


def gold_texts(question, rules, version_2_with_negative):
    """The true answers of a question, normalised; "" where it is true that there is none."""
    golds = [rules.normalize(gold.text) for gold in question.answers]
    if version_2_with_negative:
        golds = [gold for gold in golds if gold or not rules.drops_empty] or [""]
    return golds


def score_text(text, golds, rules, version_2_with_negative):
    """Exact match and overlap of an answer, each the best over the true ones."""
    answer = rules.normalize(text)
    exact = max((float(answer == gold) for gold in golds), default=0.0)
    overlap = max(
        (
            float(answer == gold)
            if version_2_with_negative and not (answer and gold)
            else rules.overlap(answer, gold)
            for gold in golds
        ),
        default=0.0,
    )
    return exact, overlap


def score_answers(questions, answers, benchmark="squad"):
    """Scores answers where every question has one, as SQuAD 1.1 and KorQuAD 1.0.

    Args:
        questions, answers, benchmark: as for `score_each`.

    Returns:
        A dict: "exact_match" and "f1" (of KLUE-MRC "rouge_w"), in per cent.
    """
    exact, overlap = score_each(questions, answers, benchmark, False)
    name = BENCHMARKS[benchmark].overlap_name
    return {"exact_match": _percent(exact.values()), name: _percent(overlap.values())}


def score_answers_or_none(questions, answers, null_odds=None, benchmark="squad"):
    """Scores answers where a question may have none, as SQuAD 2.0 and KLUE-MRC.

    Args:
        questions, benchmark: as for `score_each`.
        answers: a dict from ids to texts, "" where there is no answer.
        null_odds: how likely each question is to have none, id -> number. With it come
            best_exact and best_f1, what the best thresholds would give; for that `answers` should
            say nothing of odds themselves, as `answers.Answered.texts`.

    Returns:
        A dict with SQuAD 2.0's names: exact, f1, total; HasAns_exact, HasAns_f1, HasAns_total;
        NoAns_exact and so on; best_exact, best_exact_thresh, best_f1, best_f1_thresh. Scores are
        in per cent; of KLUE-MRC rouge_w stands for f1.
    """
    exact, overlap = score_each(questions, answers, benchmark, True)
    name = BENCHMARKS[benchmark].overlap_name
    parts = {
        "": questions,
        "HasAns_": [question for question in questions if question.answers],
        "NoAns_": [question for question in questions if not question.answers],
    }
    scores = {}
    for beginning, part in parts.items():
        if part:
            scores[f"{beginning}exact"] = _percent([exact[question.id] for question in part])
            scores[f"{beginning}{name}"] = _percent([overlap[question.id] for question in part])
            scores[f"{beginning}total"] = len(part)
    if null_odds is not None:
        for key, values in (("exact", exact), (name, overlap)):
            best, threshold = best_threshold(questions, answers, values, null_odds)
            scores[f"best_{key}"], scores[f"best_{key}_thresh"] = best, threshold
    return scores


def best_threshold(questions, answers, scores, null_odds):
    """The threshold of odds above which "" is answered that gives the best score.

    As SQuAD 2.0's program: the questions are answered one by one, those with the lowest odds
    first; 0 where it is best to answer none.

    Args:
        questions: `finetuning.question_answering.data.Question`s.
        answers: a dict from ids to texts.
        scores: id -> the score of that answer, of 0 to 1.
        null_odds: id -> number.

    Returns:
        The best score in per cent, and the threshold.
    """
    answerable = {question.id: bool(question.answers) for question in questions}
    current = best = sum(not each for each in answerable.values())
    threshold = 0.0
    for key in sorted(answerable, key=lambda each: null_odds[each]):
        if answerable[key]:
            current += scores[key]
        elif answers[key]:
            current -= 1
        if current > best:
            best, threshold = current, null_odds[key]
    return 100.0 * best / len(answerable), threshold


def _percent(values):
    return 100.0 * sum(values) / len(values)
