"""Reads questions with options to choose from, in RACE or JSON lines, and makes rows of them.

Shapes: B batch, C choices, T pieces of a row.
"""

import dataclasses
import itertools
import os
from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.json_text import read_json
from finetuning.inputs import Row, pad_rows
from finetuning.question_answering.windows import encode_groups
from tokenization.vocabulary import read_bytes

# The folders of RACE's splits, which examinations are told apart by.
RACE_LEVELS = ("middle", "high")

# Where it lies in such a folder it holds all of its articles, an object a line: the form that
# google-research/albert reads.
RACE_LINES = "all.txt"

# [CLS] context [SEP] question with option [SEP]
SPECIALS = 3

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Choice(NamedTuple):
    """A question about a text, with options."""

    id: str
    context: str
    question: str
    options: tuple
    label: int | None  # the number of the right option; None: not published


class EncodedChoice(NamedTuple):
    """A question as pieces; questions about one text share its array."""

    context_ids: np.ndarray  # [pieces] int32
    asked: list  # for each option the question with it, [pieces] int32


@dataclasses.dataclass(frozen=True)
class ChoiceDataset:
    """The questions of a run: split -> `Choice`s."""

    read: dict

    @property
    def splits(self):
        """The splits that there are, and whether their answers are known."""
        return {
            split: all(choice.label is not None for choice in choices)
            for split, choices in self.read.items()
        }


def read_dataset_split(dataset, split, data_dir):
    """The questions of a split; none is left out."""
    return dataset.read[split], {}


def read_race(data_dir, split, levels=RACE_LEVELS):
    """Reads a split of RACE: a folder of .txt files for each level, an article in each.

    Or all articles of a level are in the file all.txt of that folder, one a line.

    Args:
        data_dir: holds train, dev, test, or a folder RACE with them.
        split: one of them.
        levels: which of its folders.

    Returns:
        A list of `Choice`s, in the order of the files' names, or of the lines.

    Raises:
        InputError: a folder or a file that is missing, empty or broken, named in one line.
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
            choices += _race_lines(os.path.join(path, RACE_LINES))
        else:
            for file in files:
                # The name of a file need not be UTF-8, what is written is.
                name = os.fsencode(os.path.basename(file)).decode("utf-8", "replace")
                choices += _race_article(_object(read_bytes(file), file), file, name)
    return _of_one_count(choices, folder)


def find_race(data_dir, split):
    """The folder of a split of RACE, or None."""
    return next(filter(os.path.isdir, _race_folders(data_dir, split)), None)


def _race_folders(data_dir, split):
    return [os.path.join(data_dir, *beside, split) for beside in ((), ("RACE",))]


def _race_lines(path):
    """The questions about all articles of a file."""
    for number, line in enumerate(_lines(path), 1):
        where = f"{path} line {number}"
        entry = _object(line, where)
        yield from _race_article(entry, where, str(entry.get("id", number)))


def _race_article(entry, where, name):
    """The questions about one article.

    Args:
        entry: the object that it is.
        where: what it was read from, for messages.
        name: its own; questions are numbered after it.
    """
    article = _field(entry, "article", str, where)
    lists = [_field(entry, key, list, where) for key in ("questions", "options", "answers")]
    if len({len(each) for each in lists}) != 1:
        raise InputError(
            f"{where} must have as many questions as options and answers. Received: "
            + ", ".join(str(len(each)) for each in lists)
        )
    for number, (question, options, answer) in enumerate(zip(*lists, strict=True)):
        place = f"{where} question {number + 1}"
        yield _choice(f"{name}-{number}", article, question, options, answer, place)


def read_choices(path):
    """Reads a JSON object a line, with context, question, options and, if known, label.

    Args:
        path: a UTF-8 file. A label is the number of an option from 0, or its letter from A; an
            object may have an id, else its line is its name.

    Returns:
        A list of `Choice`s.

    Raises:
        InputError: a file that is missing, empty or broken; all but the first name the line.
    """
    choices = []
    for number, line in enumerate(_lines(path), 1):
        where = f"{path} line {number}"
        entry = _object(line, where)
        context, question = (_field(entry, name, str, where) for name in ("context", "question"))
        options = _field(entry, "options", list, where)
        name = str(entry.get("id", number))
        choices.append(_choice(name, context, question, options, entry.get("label"), where))
    return _of_one_count(choices, path)


def _lines(path):
    """The lines of a file, without the empty end of the last one."""
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return lines if lines[-1].strip() else lines[:-1]


def _object(text, where):
    entry = read_json(text, where)
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be an object. Received: {_shown(entry)}")
    return entry


def _field(entry, name, kind, where):
    if not isinstance(entry.get(name), kind):
        kind = "a string" if kind is str else "a list"
        raise InputError(f"{where}: {name!r} must be {kind}. Received: {_shown(entry.get(name))}")
    return entry[name]


def _choice(name, context, question, options, label, where):
    """A `Choice`, its parts checked."""
    texts = [question, *(options if isinstance(options, list) else [None])]
    if not all(isinstance(text, str) for text in texts) or len(texts) < 3:
        raise InputError(
            f"{where} must be a string with at least two strings to choose from. "
            f"Received: {_shown(texts)}"
        )
    count = len(options)
    known = isinstance(label, str) and len(label) == 1 and label in _LETTERS
    number = _LETTERS.index(label) if known else label
    if number is not None and (type(number) is not int or not 0 <= number < count):
        raise InputError(
            f"{where}: the label must be 0 to {count - 1}, or a letter from A. "
            f"Received: {_shown(label)}"
        )
    return Choice(name, context, question, tuple(options), number)


def _of_one_count(choices, where):
    """All of them, as many options everywhere."""
    counts = sorted({len(choice.options) for choice in choices})
    if len(counts) != 1:
        raise InputError(
            f"{where} must hold questions, of as many options each. Received: "
            + (" and ".join(map(str, counts)) or "none")
        )
    return choices


def _shown(value):
    return repr(value)[:60]


def fill_in(question, option):
    """An option in its question's blank "_", else after it, as google-research/albert."""
    return question.replace("_", option) if "_" in question else f"{question} {option}"


def encode_choices(tokenizer, choices, max_qa_length, workers=1):
    """Cuts texts, questions and options into pieces, every text once.

    Args:
        tokenizer: has `encode`.
        choices: `Choice`s; those about one text side by side.
        max_qa_length: the most pieces of question and option, which lose their beginning.
        workers: how many processes share the work; a single one is this process.

    Returns:
        A list of `EncodedChoice`, one for each.
    """
    groups = [list(group) for _, group in itertools.groupby(choices, lambda each: each.context)]
    return encode_groups(_encode_task, groups, max_qa_length, tokenizer, workers)


def _encode_task(plan, tokenizer, number):
    tasks, max_qa_length = plan
    encoded = []
    for group in tasks[number]:
        context_ids = np.array(tokenizer.encode(group[0].context), np.int32)
        for choice in group:
            texts = [fill_in(choice.question, option) for option in choice.options]
            asked = [np.array(tokenizer.encode(t)[-max_qa_length:], np.int32) for t in texts]
            encoded.append(EncodedChoice(context_ids, asked))
    return encoded


def make_rows(tokenizer, encoded, max_seq_length):
    """The rows of a question, as google-research/albert race_utils.py: [CLS] context [SEP] ...

    Args:
        tokenizer: a tokenizer that has [CLS] and [SEP].
        encoded: an `EncodedChoice`.
        max_seq_length: the most pieces of a row; the context loses its end.

    Returns:
        A `finetuning.inputs.Row` for each option.
    """
    rows = []
    for asked in encoded.asked:
        kept = encoded.context_ids[: max_seq_length - SPECIALS - len(asked)]
        ids = [[tokenizer.cls_id], kept, [tokenizer.sep_id], asked, [tokenizer.sep_id]]
        segment_ids = np.repeat(np.array([0, 1], np.int32), [len(kept) + 2, len(asked) + 1])
        rows.append(Row(np.concatenate(ids, dtype=np.int32), segment_ids))
    return rows


def encode_choice(tokenizer, choice, max_seq_length, max_qa_length):
    """`make_rows` of one `Choice`.

    Raises:
        InputError: `max_seq_length` has no room for `max_qa_length`.
    """
    check_lengths(max_seq_length, max_qa_length)
    return make_rows(tokenizer, *encode_choices(tokenizer, [choice], max_qa_length), max_seq_length)


def check_lengths(max_seq_length, max_qa_length):
    """Refuses rows without room for question and option."""
    if not 1 <= max_qa_length <= max_seq_length - SPECIALS:
        raise InputError(
            f"question and option must have 1 to {max_seq_length - SPECIALS} pieces of a row of "
            f"{max_seq_length}. Received: {max_qa_length}"
        )


def pad_choices(examples, length, pad_id):
    """A batch of questions.

    Args:
        examples: the `Row`s of each question, B lists of C.
        length: of the batch, no shorter than the longest row.
        pad_id: fills the places after a row.

    Returns:
        A dict of int32 arrays [B, C, length]: input_ids, input_mask, segment_ids.
    """
    batch = pad_rows([row for rows in examples for row in rows], length, pad_id)
    return {
        name: value.reshape(len(examples), -1, length)  # [B * C, T] -> [B, C, T]
        for name, value in batch.items()
    }
