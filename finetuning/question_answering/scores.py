"""Scores answers as the official programs of SQuAD 1.1 and 2.0, KorQuAD 1.0 and KLUE-MRC do."""

import collections
import difflib
import functools
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from finetuning.question_answering.data import Question

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")

# The characters that KorQuAD's program replaces by a space before it removes punctuation.
_KORQUAD_SPACES = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))

# KLUE's program intends a set of characters like KorQuAD's, but its bracket closes too early.
_KLUE_SPACES = re.compile(r"['\"《》<>〈〉]\(\)‘’")


def normalize_squad(text: str) -> str:
    """Lower-cases; removes punctuation, the articles a, an, the, and repeated spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def normalize_korquad(text: str) -> str:
    """Lower-cases and removes punctuation; quotes and some brackets become spaces."""
    return " ".join(text.translate(_KORQUAD_SPACES).lower().translate(_PUNCTUATION).split())


def normalize_klue(text: str) -> str:
    """Lower-cases and removes punctuation."""
    return " ".join(_KLUE_SPACES.sub(" ", text.lower()).translate(_PUNCTUATION).split())


def without_spaces(text: str) -> str:
    """Removes spaces, which KorQuAD's program does not count."""
    return text.replace(" ", "")


def unit_f1(units: Callable[[str], Sequence[str]], answer: str, gold: str) -> float:
    """Returns the F1 of the units, such as words, that two normalized texts have in common."""
    of_answer, of_gold = units(answer), units(gold)
    common = sum((collections.Counter(of_answer) & collections.Counter(of_gold)).values())
    return _harmonic_mean(common, len(of_answer), len(of_gold))


word_f1 = functools.partial(unit_f1, str.split)
character_f1 = functools.partial(unit_f1, without_spaces)


def rouge_w(answer: str, gold: str) -> float:
    """Returns the F1 of the longest common substring of two normalized texts; 1 if both are ""."""
    if not gold:
        return float(not answer)
    match = difflib.SequenceMatcher(None, answer, gold).find_longest_match()
    return _harmonic_mean(match.size, len(answer), len(gold))


def _harmonic_mean(common, of_answer, of_gold):
    if common == 0:
        return 0.0
    precision, recall = common / of_answer, common / of_gold
    return 2 * precision * recall / (precision + recall)


class Rules(NamedTuple):
    """The rules by which a benchmark compares an answer with a true answer."""

    normalize: Callable[[str], str]
    overlap: Callable[[str, str], float]  # of two normalized texts, 0 to 1
    overlap_name: str
    drops_empty: bool  # whether true answers that normalize to "" are ignored


BENCHMARKS = {
    "squad": Rules(normalize_squad, word_f1, "f1", True),
    "korquad": Rules(normalize_korquad, character_f1, "f1", False),
    "klue-mrc": Rules(normalize_klue, rouge_w, "rouge_w", False),
}


def score_each(
    questions: "Sequence[Question]",
    answers: Mapping[str, str],
    benchmark: str,
    version_2_with_negative: bool,
) -> tuple[dict[str, float], dict[str, float]]:
    """Computes exact match and overlap of every question, each the best over its true answers.

    Args:
        answers: id -> text, for every question.
        version_2_with_negative: whether "" is the true answer of questions that have none, and
            overlaps with itself.

    Returns:
        Two dicts, id -> a number from 0 to 1: exact match and overlap.
    """
    rules, exact, overlap = BENCHMARKS[benchmark], {}, {}
    for question in questions:
        golds = gold_texts(question, rules, version_2_with_negative)
        exact[question.id], overlap[question.id] = score_text(
            answers[question.id], golds, rules, version_2_with_negative
        )
    return exact, overlap


def gold_texts(question: "Question", rules: Rules, version_2_with_negative: bool) -> list[str]:
    """Returns the normalized true answers of a question; "" if it has none, as in SQuAD 2.0."""
    golds = [rules.normalize(gold.text) for gold in question.answers]
    if version_2_with_negative:
        golds = [gold for gold in golds if gold or not rules.drops_empty] or [""]
    return golds


def score_text(
    text: str, golds: Iterable[str], rules: Rules, version_2_with_negative: bool
) -> tuple[float, float]:
    """Computes exact match and overlap of an answer, each the best over the true answers."""
    answer = rules.normalize(text)
    exact = max((float(answer == gold) for gold in golds), default=0.0)
    overlap = 0.0
    for gold in golds:
        empty = version_2_with_negative and not (answer and gold)
        overlap = max(overlap, float(answer == gold) if empty else rules.overlap(answer, gold))
    return exact, overlap


def score_answers(
    questions: "Sequence[Question]", answers: Mapping[str, str], benchmark: str = "squad"
) -> dict[str, float]:
    """Scores answers if every question has one, as in SQuAD 1.1 and KorQuAD 1.0.

    Takes the arguments of `score_each`. Returns "exact" and "f1" ("rouge_w" for KLUE-MRC), in per
    cent.
    """
    exact, overlap = score_each(questions, answers, benchmark, False)
    name = BENCHMARKS[benchmark].overlap_name
    return {"exact": _percent(exact.values()), name: _percent(overlap.values())}


def score_answers_or_none(
    questions: "Sequence[Question]",
    answers: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    benchmark: str = "squad",
) -> dict[str, float]:
    """Scores answers if a question may have none, as in SQuAD 2.0 and KLUE-MRC.

    Args:
        answers: id -> text, "" for no answer.
        null_odds: id -> how likely the question has no answer, or None. If given, best_exact and
            best_f1, the scores at the best thresholds, are computed too; no threshold must then
            have been applied to `answers`, as in `answers.PredictedAnswers.texts`.

    Returns:
        SQuAD 2.0's names: exact, f1, total; HasAns_exact, HasAns_f1, HasAns_total; NoAns_exact and
        so on; best_exact, best_exact_thresh, best_f1, best_f1_thresh. Scores are in per cent; for
        KLUE-MRC, rouge_w replaces f1.
    """
    exact, overlap = score_each(questions, answers, benchmark, True)
    name = BENCHMARKS[benchmark].overlap_name
    parts = {
        "": questions,
        "HasAns_": [question for question in questions if question.answers],
        "NoAns_": [question for question in questions if not question.answers],
    }
    scores = {}
    for prefix, part in parts.items():
        if part:
            scores[f"{prefix}exact"] = _percent([exact[question.id] for question in part])
            scores[f"{prefix}{name}"] = _percent([overlap[question.id] for question in part])
            scores[f"{prefix}total"] = len(part)
    if null_odds is not None:
        for key, values in (("exact", exact), (name, overlap)):
            best, threshold = best_threshold(questions, answers, values, null_odds)
            scores[f"best_{key}"], scores[f"best_{key}_thresh"] = best, threshold
    return scores


def best_threshold(
    questions: "Sequence[Question]",
    answers: Mapping[str, str],
    scores: Mapping[str, float],
    null_odds: Mapping[str, float],
) -> tuple[float, float]:
    """Finds the best score, in per cent, and the threshold of null_odds that gives it.

    The answer is "" above the threshold. As in SQuAD 2.0's program, questions are answered one by
    one, lowest odds first; the threshold is 0 if it is best to answer none. The `scores` of the
    answers are from 0 to 1.
    """
    answerable = {question.id: bool(question.answers) for question in questions}
    current = best = list(answerable.values()).count(False)
    threshold = 0.0
    for key in sorted(answerable, key=null_odds.__getitem__):
        if answerable[key]:
            current += scores[key]
        elif answers[key]:
            current -= 1
        if current > best:
            best, threshold = current, null_odds[key]
    return 100.0 * best / len(answerable), threshold


def _percent(values):
    return 100.0 * sum(values) / len(values)
