"""Reads the examples of a data set from its published files."""

import math
import os
from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.json_text import read_json
from tokenization.vocabulary import read_bytes


class Example(NamedTuple):
    """A sentence or a pair with its label."""

    id: str
    text: str
    second: str | None
    # The number of the class, the score, or of several labels a 0 or 1 for each class; None: not
    # published.
    label: int | float | tuple | None


class ShortRow(Exception):
    """A row that has fewer columns than are needed."""


def read_split(dataset, split, data_dir):
    """Reads all examples of a split.

    Args:
        dataset: a row of `finetuning.datasets.DATASETS`.
        split: "train", "dev", "test" or what else the task has.
        data_dir: holds the task's files, or a folder of the task's name with them.

    Returns:
        A list of `Example`s, and how many rows were left out for which reason: a dict.

    Raises:
        InputError: names file and line: a file that is missing, empty or not UTF-8, a column that
            is missing, a line that is broken, a label that the task does not have.
    """
    if split not in dataset.sources:
        raise InputError(f"the task has {', '.join(dataset.sources)}. Received: {split}")
    source = dataset.sources[split]
    examples, left_out = [], dict.fromkeys(source.left_out, 0)
    for name in source.files:
        path = find_file(name, data_dir, dataset.folder)
        count = len(examples)
        for where, field in read_rows(path, source):
            try:
                if source.where and field(source.where[0]) != source.where[1]:
                    continue
                text = _text(field(source.text), where)
                second = None if source.second is None else _text(field(source.second), where)
                label = None if source.label is None else field(source.label)
                number = where if source.id is None else str(field(source.id))
            except ShortRow as error:
                if "short" not in left_out:
                    raise InputError(f"{where} must have {error}") from None
                left_out["short"] += 1
                continue
            if "NS" in left_out and "NS" in (text, second):
                left_out["NS"] += 1
                continue
            if source.label is not None:
                label = read_label(dataset, label, where)
            examples.append(Example(number, text, second, label))
        if len(examples) == count:
            raise InputError(f"{path} must hold an example. Received: none")
    return examples, left_out


def find_file(name, data_dir, folder):
    """The path of a data set's file, in the folder itself or in that of the data set."""
    paths = [os.path.join(data_dir, name), os.path.join(data_dir, folder, name)]
    found = [path for path in paths if os.path.isfile(path)]
    if not found:
        raise InputError(f"the task needs a file {' or '.join(paths)}. Received: no such file")
    return found[0]


def read_label(dataset, value, where):
    """The class's number, or the score; of several labels a 0 or 1 for each class."""
    if not dataset.labels:
        try:
            score = float(value)
        except (TypeError, ValueError, OverflowError):
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{where}: the label must be a number. Received: {value!r}")
        return score
    values = label_texts(value, dataset.multi_label, where)
    values = [dataset.aliases.get(label, label) for label in values]
    unknown = [label for label in values if label not in dataset.labels]
    if unknown:
        raise InputError(
            f"{where}: the label must be one of {', '.join(dataset.labels)}. "
            f"Received: {unknown[0]!r}"
        )
    if dataset.multi_label:
        return tuple(int(label in values) for label in dataset.labels)
    return dataset.labels.index(values[0])


def label_texts(value, several, where):
    """The labels of an example: one, or of several a JSON list, or text with commas between.

    Raises:
        InputError: names file and line of what is no label.
    """
    parts = value if several and isinstance(value, list) else [value]
    wrong = [part for part in parts if not isinstance(part, str | int | float)]
    if wrong:
        raise InputError(f"{where}: a label must be text or a number. Received: {wrong[0]!r}")
    if several and isinstance(value, str):
        parts = value.split(",")
    texts = [str(part).strip() for part in parts]
    return [text for text in texts if text] if several else texts


def _text(value, where):
    if not isinstance(value, str):
        raise InputError(f"{where}: the text must be a string. Received: {value!r}")
    return value.strip()


def read_rows(path, source):
    """For every row its place, and a function from a column to the value there.

    Args:
        path: a file.
        source: a `finetuning.datasets.Source`, whose columns the file must have.

    Raises:
        InputError: names file and line.
    """
    if path.endswith(".json"):
        entries = read_json(read_bytes(path), path)
        if not isinstance(entries, list):
            raise InputError(f"{path} must hold a list of objects. Received: {_shown(entries)}")
        for number, entry in enumerate(entries, 1):
            yield _object(entry, f"{path} entry {number}")
    elif path.endswith(".jsonl"):
        for where, line in read_lines(path):
            yield _object(read_json(line, where), where)
    else:
        lines = read_lines(path)
        columns = {}
        if not isinstance(source.text, int):
            where, header = next(lines, (f"{path} line 1", ""))
            columns = {name: i for i, name in enumerate(header.split("\t"))}
            needed = (source.text, source.second, source.label, source.id, *source.where[:1])
            missing = [name for name in needed if name is not None and name not in columns]
            if missing:
                raise InputError(
                    f"{where} must name the columns {', '.join(missing)}. "
                    f"Received: {', '.join(columns)}"
                )
        for where, line in lines:
            yield where, _field_of_columns(line.split("\t"), columns)


def read_lines(path):
    """For every line its place and its text; only "\\n" ends a line, with a "\\r" before it."""
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        where = f"{path} line {number}"
        try:
            yield where, line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where} must be UTF-8. Received: byte 0x{line[error.start]:02x}"
            ) from None


def _field_of_columns(fields, columns):
    def field(column):
        index = columns.get(column, column)
        if index >= len(fields):
            raise ShortRow(f"at least {index + 1} columns. Received: {len(fields)}")
        return fields[index]

    return field


def _object(entry, where):
    """The place of a JSON object with the function from a column, or a path, to its value."""
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be an object. Received: {_shown(entry)}")

    def field(column):
        value = entry
        for key in column.split("."):
            if not isinstance(value, dict) or key not in value:
                raise ShortRow(f"{column!r}. Received: {', '.join(entry)}")
            value = value[key]
        return value

    return where, field


def _shown(value):
    return repr(value)[:60]
