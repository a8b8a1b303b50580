"""Reads and encodes multiple-choice questions, from RACE or from JSON lines.

Shapes: B batch, C options, T tokens of a row.
"""

import dataclasses
import itertools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.progress import with_progress
from finetuning.inputs import Batch, InputRow, pad_rows
from finetuning.tables import check_object, json_field, read_lines, shortened
from tokenization import SentencePieceTokenizer
from tokenization.base import TokenizerInterface

# The folders of each split of RACE: the examinations of middle and high schools.
RACE_LEVELS = ("middle", "high")

# A file with all articles of such a folder, one object per line; google-research/albert reads it.
RACE_LINES = "all.txt"

# [CLS] context [SEP] question with option [SEP]
SPECIALS = 3

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class ChoiceQuestion(NamedTuple):
    """A question about a text, with its options."""

    id: str
    context: str
    question: str
    options: tuple[str, ...]
    label: int | None  # the index of the correct option; None: not published


class EncodedChoiceQuestion(NamedTuple):
    """A tokenized question; questions about the same text share its array."""

    context_ids: np.ndarray  # [pieces] int32
    pairs: list[np.ndarray]  # question and option for each option, [pieces] int32


@dataclasses.dataclass(frozen=True)
class ChoiceDataset:
    """The questions of a run: split -> `ChoiceQuestion`s."""

    questions: dict[str, list[ChoiceQuestion]]

    @property
    def splits(self) -> dict[str, bool]:
        """Maps each split to whether its answers are known."""
        return {
            split: all(choice.label is not None for choice in choices)
            for split, choices in self.questions.items()
        }


def read_dataset_split(
    dataset: ChoiceDataset, split: str, data_dir: str | None
) -> tuple[list[ChoiceQuestion], dict[str, int]]:
    """Returns the questions of a split; none is left out."""
    return dataset.questions[split], {}


def read_race(
    data_dir: str, split: str, levels: Sequence[str] = RACE_LEVELS
) -> list[ChoiceQuestion]:
    """Reads a split of RACE, which has a folder for each level with a .txt file for each article.

    If a level's folder has a file all.txt, it holds all articles of the level, one per line.
    `data_dir` holds the folders train, dev and test, or a folder RACE with them. The questions are
    in the order of the file names, or of the lines.
    """
    folder = find_race(data_dir, split)
    if folder is None:
        folders = " or ".join(_race_folders(data_dir, split))
        raise InputError(f"RACE needs a folder {folders}. Received: no such folder")
    choices = []
    for level in levels:
        path = os.path.join(folder, level)
        names = sorted(os.listdir(path)) if os.path.isdir(path) else []
        files = [os.path.join(path, name) for name in names if name.endswith(".txt")]
        if not files:
            raise InputError(f"{path} must hold articles, .txt files. Received: none")
        if RACE_LINES in names:
            for where, name, entry in _named_objects(os.path.join(path, RACE_LINES)):
                choices += _race_article(entry, where, name)
        else:
            for file in files:
                # File names need not be UTF-8, but the predictions file must be.
                name = os.fsencode(os.path.basename(file)).decode("utf-8", "replace")
                choices += _race_article(read_json(read_bytes(file), file), file, name)
    return _check_option_counts(choices, folder)


def find_race(data_dir: str, split: str) -> str | None:
    """Returns the folder of a split of RACE, or None."""
    return next(filter(os.path.isdir, _race_folders(data_dir, split)), None)


def _race_folders(data_dir, split):
    return [os.path.join(data_dir, split), os.path.join(data_dir, "RACE", split)]


def _race_article(entry, where, name):
    """Yields the questions about an article, a JSON object; their ids are NAME-NUMBER."""
    article = json_field(entry, "article", str, where)
    lists = [json_field(entry, key, list, where) for key in ("questions", "options", "answers")]
    if len({len(values) for values in lists}) != 1:
        raise InputError(
            f"{where}: the numbers of questions, options and answers must be equal. Received: "
            + ", ".join(str(len(values)) for values in lists)
        )
    for number, (question, options, answer) in enumerate(zip(*lists, strict=True)):
        place = f"{where} question {number + 1}"
        yield _choice(f"{name}-{number}", article, question, options, answer, place)


def read_choices(path: str) -> list[ChoiceQuestion]:
    """Reads JSON lines: objects with context, question, options and, if known, label.

    A label is the number of an option from 0, or its letter from A. A question without an id is
    named after its line.
    """
    choices = []
    for where, name, entry in _named_objects(path):
        context, question = (json_field(entry, n, str, where) for n in ("context", "question"))
        options = json_field(entry, "options", list, where)
        choices.append(_choice(name, context, question, options, entry.get("label"), where))
    return _check_option_counts(choices, path)


def _named_objects(path):
    """Yields the place, the name and the JSON object of each line, except for a blank last line."""
    lines = list(read_lines(path))
    if lines[1:] and not lines[-1][1].strip():
        lines.pop()
    for number, (where, line) in enumerate(lines, 1):
        entry = read_json(line, where)
        check_object(entry, where)
        # null means no id: tables in which only other rows have an id are written so.
        name = number if entry.get("id") is None else _whole(entry["id"])
        yield where, str(name), entry


def _whole(value):
    """Returns 1 for 1.0: tables that lack the number in other rows write floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _choice(name, context, question, options, label, where):
    """Checks the parts of a `ChoiceQuestion` and makes it."""
    texts = [question, *(options if isinstance(options, list) else [None])]
    if not all(isinstance(text, str) for text in texts) or len(texts) < 3:
        raise InputError(
            f"{where} must be a string with at least two strings to choose from. "
            f"Received: {shortened(texts)}"
        )
    count = len(options)
    is_letter = isinstance(label, str) and len(label) == 1 and label in _LETTERS
    number = _LETTERS.index(label) if is_letter else _whole(label)
    if number is not None and (type(number) is not int or not 0 <= number < count):
        raise InputError(
            f"{where}: the label must be 0 to {count - 1}, or a letter from A. "
            f"Received: {shortened(label)}"
        )
    return ChoiceQuestion(name, context, question, tuple(options), number)


def _check_option_counts(choices, where):
    """Returns the questions; raises an `InputError` if their numbers of options differ."""
    counts = sorted({len(choice.options) for choice in choices})
    if len(counts) != 1:
        raise InputError(
            f"{where}: every question must have the same number of options. Received: "
            + (" and ".join(map(str, counts)) or "none")
        )
    return choices


def fill_in(question: str, option: str) -> str:
    """Puts an option into its question's blank "_" or behind it, as google-research/albert does."""
    return question.replace("_", option) if "_" in question else f"{question} {option}"


def trims_options(tokenizer: TokenizerInterface) -> bool:
    """Returns True if options lose the spaces at their ends before they are filled in.

    google-research/albert preprocesses every text by itself for a SentencePiece model, not for
    WordPiece.
    """
    return isinstance(tokenizer, SentencePieceTokenizer)


def encode_choices(
    tokenizer: TokenizerInterface, choices: Sequence[ChoiceQuestion], max_qa_length: int
) -> list[EncodedChoiceQuestion]:
    """Tokenizes questions and options, and a text once for consecutive questions about it.

    Question and option together are cut at the beginning to `max_qa_length` tokens.
    """
    encoded = []
    shown = with_progress(choices, "encoding", "questions")
    for context, group in itertools.groupby(shown, lambda choice: choice.context):
        context_ids = np.array(tokenizer.encode(context), np.int32)
        for choice in group:
            options = choice.options
            if trims_options(tokenizer):
                options = tuple(option.strip() for option in options)
            texts = [fill_in(choice.question, option) for option in options]
            pairs = [np.array(tokenizer.encode(t)[-max_qa_length:], np.int32) for t in texts]
            encoded.append(EncodedChoiceQuestion(context_ids, pairs))
    return encoded


def make_rows(
    tokenizer: TokenizerInterface, encoded: EncodedChoiceQuestion, max_seq_length: int
) -> list[InputRow]:
    """Makes a row for each option of a question, as google-research/albert race_utils.py does.

    A context that is too long is cut at the end.
    """
    rows = []
    for pair in encoded.pairs:
        context = encoded.context_ids[: max_seq_length - SPECIALS - len(pair)]
        ids: list[Any] = [[tokenizer.cls_id], context, [tokenizer.sep_id], pair, [tokenizer.sep_id]]
        segment_ids = np.repeat(np.array([0, 1], np.int32), [len(context) + 2, len(pair) + 1])
        rows.append(InputRow(np.concatenate(ids, dtype=np.int32), segment_ids))
    return rows


def check_lengths(max_seq_length: int, max_qa_length: int) -> None:
    """Raises an `InputError` if rows have no room for question and option."""
    if not 1 <= max_qa_length <= max_seq_length - SPECIALS:
        raise InputError(
            f"--max_qa_length must be from 1 to {max_seq_length - SPECIALS}, as rows of "
            f"--max_seq_length={max_seq_length} hold. Received: {max_qa_length}"
        )


def pad_choices(examples: Sequence[Sequence[InputRow]], length: int, pad_id: int) -> Batch:
    """Pads B questions of C rows into a batch like `pad_rows`, but int32 [B, C, length]."""
    batch = pad_rows([row for rows in examples for row in rows], length, pad_id)  # [B * C, T]
    return {
        name: value.reshape(len(examples), -1, length)  # [B * C, T] -> [B, C, T]
        for name, value in batch.items()
    }
