"""Reads questions about texts in SQuAD's format: SQuAD 1.1 and 2.0, KorQuAD 1.0, KLUE-MRC."""

import collections
import dataclasses
from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.text_encoding import SAMPLE_BYTES, detect_encoding
from finetuning.tables import json_field, read_text, shortened


class Answer(NamedTuple):
    """An answer, a part of the context."""

    text: str
    start: int  # its first character in the context


class Question(NamedTuple):
    """A question about a text; questions about the same text share one `context` string."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]  # empty if there is no answer, or if none is published
    is_impossible: bool
    article: str = ""  # the title of the text's article, or its number in the file


@dataclasses.dataclass(frozen=True)
class QuestionDataset:
    """The questions of a run, and the benchmark whose rules score the answers."""

    benchmark: str  # a key of `finetuning.question_answering.scores.BENCHMARKS`
    version_2_with_negative: bool  # whether there may be questions without an answer
    # split -> the questions and counts that `read_questions` returned for its file
    files: dict[str, tuple[list[Question], dict[str, int]]]

    @property
    def splits(self) -> dict[str, bool]:
        """A map from each split to whether its answers are known."""
        return {
            split: any(entry.answers or entry.is_impossible for entry in questions)
            for split, (questions, _) in self.files.items()
        }


def read_dataset_split(
    dataset: QuestionDataset, split: str, data_dir: str | None
) -> tuple[list[Question], dict[str, int]]:
    """Returns the questions of a split, and counts of what was changed or left out in it."""
    return dataset.files[split]


MOVED = "answers found elsewhere in their text"
LEFT_OUT = "questions left out, whose answers are not in their text"
NOT_FOUND = "answers that are not in their text"
IGNORED = "answers of impossible questions ignored"

# The maximum number of bad answers in a message.
SHOWN = 5


def read_questions(
    path: str,
    version_2_with_negative: bool = False,
    with_answers: bool = True,
    articles: tuple[int, int] | None = None,
    bad_answers: str = "refuse",
    text: str | None = None,
) -> tuple[list[Question], dict[str, int]]:
    """Reads the questions of a file, or of some of its articles.

    Args:
        path: JSON in the format of SQuAD, which KorQuAD 1.0 and KLUE-MRC share.
        version_2_with_negative: whether there may be questions without an answer.
        with_answers: whether to read answers, as for training and scoring; all questions must
            then have them.
        articles: (first, end) of the articles to read, counted from 0 in the file's order. Default:
            all.
        bad_answers: how to treat answers that do not occur in their texts: "refuse" raises an
            error; "leave out" drops them, and questions without other answers; "keep" keeps their
            texts with the start -1, as the score compares only texts.
        text: the decoded contents of a file that may be in any encoding. Default: the file is read
            in an encoding that JSON allows, such as UTF-8, or in cp949.

    Returns:
        The questions, and counts of: answers whose wrong offset in the file was replaced by the
        nearest occurrence in the text; bad answers; questions left out; ignored answers of
        questions that are marked as impossible.

    Raises:
        InputError: the file is missing, empty, not JSON or of a different format; two questions
            share an id; answers do not occur in their texts (one message for all); a question lacks
            a required answer; the file has too few articles.
    """
    content = _read_content(path) if text is None else read_json(text, path)
    questions, bad = [], []
    places: dict[str, str] = {}
    counts: collections.Counter[str] = collections.Counter()
    for article, paragraph, where in _paragraphs(content, path, articles):
        context = json_field(paragraph, "context", str, where)
        for number, entry in enumerate(json_field(paragraph, "qas", list, where), 1):
            here = f"{where} question {number}"
            name = "guid" if isinstance(entry, dict) and "guid" in entry else "id"  # KLUE-MRC
            if isinstance(entry, dict) and not {"id", "guid"} & entry.keys():
                raise InputError(
                    f"{here} must have 'id', or 'guid' as in KLUE-MRC. Received: {', '.join(entry)}"
                )
            key = str(json_field(entry, name, (str, int), here))
            here = f"{path} question {key!r}"
            if key in places:
                raise InputError(f"{here}: the id must be unique. Received: {places[key]}, {where}")
            places[key] = where
            question = json_field(entry, "question", str, here)
            impossible = _is_impossible(entry, here)
            answers = ()
            if with_answers:
                entries = json_field(entry, "answers", list, here)
                if impossible and version_2_with_negative and entries:
                    # Training treats the question as having no answer, so scoring does too.
                    counts[IGNORED] += len(entries)
                    entries = []
                answers, lost = _answers(entries, context, here, counts)
                bad += [(key, text) for text in lost]
                if lost and bad_answers == "keep":
                    answers += tuple(Answer(text, -1) for text in lost)
                if lost and not answers:
                    counts[LEFT_OUT] += 1
                    continue
                _check_answered(answers, impossible, version_2_with_negative, here)
            questions.append(Question(key, question, context, answers, impossible, article=article))
    if bad and bad_answers == "refuse":
        named = "; ".join(f"{text[:60]!r} of question {key!r}" for key, text in bad[:SHOWN])
        raise InputError(
            f"{path}: every answer must be in its text (--skip_bad_answers leaves the others out "
            f"of the training). Received: {len(bad):,} that {'is' if len(bad) == 1 else 'are'} "
            f"not: {named}{'; ...' if len(bad) > SHOWN else ''}"
        )
    if not questions:
        raise InputError(f"{path} must hold a question. Received: none")
    if bad:
        counts[NOT_FOUND] = len(bad)
    return questions, dict(counts)


def has_answers(path: str, articles: tuple[int, int] | None = None) -> bool:
    """Returns True if any question of a file has an answer or is marked as impossible.

    `articles` selects articles, as in `read_questions`.
    """
    content = _read_content(path)
    first, end = articles or (0, None)
    try:
        return any(
            entry.get("answers") or entry.get("is_impossible")
            for article in content["data"][first:end]
            for paragraph in article["paragraphs"]
            for entry in paragraph["qas"]
        )
    except (AttributeError, KeyError, TypeError):
        return True  # a different format, which `read_questions` reports


def _read_content(path):
    """Reads JSON in any encoding that it may have, or in cp949, as Korean Windows writes files."""
    content = read_bytes(path)
    is_cp949 = detect_encoding(content[:SAMPLE_BYTES]) == "cp949"
    return read_json(read_text(path) if is_cp949 else content, path)


def _paragraphs(content, path, articles):
    """Yields (name of the article, paragraph, place in the file) for every paragraph."""
    # KorQuAD 2, for example, has whole pages in HTML instead of paragraphs.
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise InputError(
            f'{path} must be in the format of SQuAD, an object with a list "data". Received: '
            f"{', '.join(content) if isinstance(content, dict) else shortened(content)}"
        )
    count = len(content["data"])
    first, end = articles or (0, count)
    if end > count:
        raise InputError(f"{path} must have at least {end} articles. Received: {count}")
    for number, article in enumerate(content["data"][first:end], first + 1):
        where = f"{path} article {number}"
        paragraphs = json_field(article, "paragraphs", list, where)
        name = str(article.get("title") or f"article {number}")
        for index, paragraph in enumerate(paragraphs, 1):
            yield name, paragraph, f"{where} paragraph {index}"


def _is_impossible(entry, where):
    value = entry.get("is_impossible")
    if value not in (None, False, True):  # 0 and 1 equal False and True
        raise InputError(
            f"{where}: 'is_impossible' must be true or false. Received: {shortened(value)}"
        )
    return bool(value)


def _answers(entries, context, where, counts):
    """Returns the `Answer`s in the context and the texts of the others; counts moved answers."""
    answers, lost = [], []
    for entry in entries:
        text = json_field(entry, "text", str, where)
        start = json_field(entry, "answer_start", int, where)
        if not text.strip():
            raise InputError(f"{where}: an answer must have a text. Received: {text!r}")
        if start < 0 or not context.startswith(text, start):
            start = _nearest(text, start, context)
            if start is None:
                lost.append(text)
                continue
            counts[MOVED] += 1
        answers.append(Answer(text, start))
    return tuple(answers), lost


def _nearest(text, start, context):
    """Returns where the text occurs nearest to `start`, or None if it does not occur."""
    start = max(0, min(start, len(context)))
    before, after = context.rfind(text, 0, start + len(text)), context.find(text, start)
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)


def _check_answered(answers, impossible, version_2_with_negative, where):
    if impossible and not version_2_with_negative:
        raise InputError(
            f"{where} must have an answer without --version_2_with_negative. "
            'Received: "is_impossible": true'
        )
    if not answers and not impossible:
        raise InputError(f"{where} must have an answer. Received: none")
