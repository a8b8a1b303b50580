"""Reads classification examples from the rows of data sets' files."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_common.errors import InputError
from finetuning.csv_tables import SEPARATORS
from finetuning.datasets import DATASETS, Column, Dataset, SplitSource
from finetuning.labels import Label, read_label, read_own_label
from finetuning.tables import FILE_TYPES, composed, read_cells, read_header, read_objects


class Example(NamedTuple):
    """A sentence or a pair of sentences, with its label."""

    id: str
    text: str
    second: str | None
    label: Label | None  # None: not published
    # (first character, end) of the parts to keep if the text is too long for a row: the marked
    # entities.
    kept: tuple[tuple[int, int], ...] = ()
    where: str = ""  # its file and line, even if a column gives the `id`


class Entity(NamedTuple):
    """A named entity of a sentence."""

    start: int  # its first character
    last: int  # its last character
    type: str  # a key of `ENTITY_TYPES`


# The words for the types of KLUE-RE's entities, written in front of the entities; "POH" and "NOH"
# are other proper nouns and other numbers. Korean vocabularies have tokens for these Korean words.
ENTITY_TYPES = {
    "PER": "인물", "ORG": "단체", "LOC": "장소", "DAT": "날짜", "POH": "기타", "NOH": "수량",
}  # fmt: skip

# The markers around subject and object: the typed entity markers (punctuation) of arXiv:2102.01373.
# Usual vocabularies have tokens for them. KLUE-baseline's program instead adds four tokens to the
# vocabulary (<subj>, </subj>, <obj>, </obj>), whose vectors begin untrained.
ENTITY_MARKERS = (("@ * {} * ", "@"), ("# ^ {} ^ ", "#"))


class MissingColumn(InputError):
    """A row lacks a required column, or a JSON object a required key."""


class OtherColumns(MissingColumn):
    """A row has an unexpected number of columns, so its cells may belong to other columns."""


# The splits of a user's own files.
SPLITS = ("train", "dev", "test")

# Why a row of a published data set was left out; in a user's own file this is an error.
STRAY_TAB = "more columns than the header"


def read_split(dataset: Dataset, split: str, data_dir: str) -> tuple[list[Example], dict[str, int]]:
    """Reads all examples of a split.

    Args:
        data_dir: holds the files, or a folder `dataset.folder` with them.

    Returns:
        The examples, and the number of rows left out for each reason.

    Raises:
        InputError: a file is missing, empty or in an unknown encoding, a column is missing, a line
            is malformed or a label unknown; names file and line.
    """
    source = dataset.sources[split]
    examples: list[Example] = []
    left_out = dict.fromkeys(source.left_out, 0)
    for file in source.files:
        path = file if source.own else find_file(file, data_dir, dataset.folder)
        count = len(examples)
        for where, field in read_rows(path, source):
            try:
                if source.row_filter and field(source.row_filter[0]) != source.row_filter[1]:
                    continue
                text, kept = _text(field(source.text), where), ()
                if source.entities:
                    entities = [_entity(field, column, where) for column in source.entities]
                    # The entities' offsets count the spaces at the text's ends.
                    text, kept = mark_entities(field(source.text), entities, where)
                second = None if source.second is None else _text(field(source.second), where)
                label = None if source.label is None else field(source.label)
                name = None if source.id is None else field(source.id)
            except OtherColumns:
                if source.own:
                    raise
                left_out[STRAY_TAB] = left_out.get(STRAY_TAB, 0) + 1
                continue
            except MissingColumn as error:
                if "short" not in left_out:
                    raise InputError(f"{error}{_way_out(source)}") from None
                left_out["short"] += 1
                continue
            if "NS" in left_out and "NS" in (text, second):
                left_out["NS"] += 1
                continue
            if source.label is not None:
                if source.own:
                    label = read_own_label(dataset, label, where, source.label)
                else:
                    label = read_label(dataset, label, where)
            # null means no id, as in run_race's files.
            name = where if name is None else str(name)
            examples.append(Example(name, text, second, label, kept, where))
        if len(examples) == count:
            raise InputError(f"{path} must hold an example. Received: none")
        if source.part:
            examples = take_part(examples, source.part, path)
    return examples, left_out


def take_part(examples: Sequence[Example], part: str, path: str) -> list[Example]:
    """Returns a tenth of the examples as "dev", or the others as "train"; always the same ones.

    Both parts keep the file's shares of the classes, and equal texts are in the same part.
    """
    groups: dict[str, dict[tuple[str, str | None], None]] = {}
    for example in examples:
        label = repr(example.label) if isinstance(example.label, int) else ""
        groups.setdefault(label, {})[example.text, example.second] = None
    rng = np.random.default_rng(0)
    held: set[tuple[str, str | None]] = set()
    for label in sorted(groups):
        texts = list(groups[label])
        count = max(1, round(len(texts) * HELD_OUT_SHARE)) if len(texts) > 1 else 0
        held.update(texts[i] for i in rng.permutation(len(texts))[:count])
    if not (chosen := [e for e in examples if ((e.text, e.second) in held) == (part == "dev")]):
        raise InputError(
            f"{path} must hold examples enough to hold some out: two texts of a class. "
            f"Received: {len(examples)} examples"
        )
    return chosen


# The share of a single file of examples that is held out of training.
HELD_OUT_SHARE = 0.1


def files_in(folder: str, kinds: Sequence[str]) -> dict[str, str]:
    """Finds the files train, dev and test in a folder that exist, as split -> path.

    They have the first of the endings `kinds` that any such file has. If there is none, an
    `InputError` says what is there.
    """
    for kind in kinds:
        paths = {split: os.path.join(folder, f"{split}.{kind}") for split in SPLITS}
        present = {split: path for split, path in paths.items() if os.path.isfile(path)}
        if present:
            return present
    return {"train": find_file(f"train.{kinds[0]}", folder, "")}


def find_file(name: str, data_dir: str, folder: str) -> str:
    """Returns the path of a data set's file, in `data_dir` itself or in its subfolder `folder`."""
    paths = [os.path.join(data_dir, name), os.path.join(data_dir, folder, name)]
    if existing := [path for path in paths if os.path.isfile(path)]:
        return existing[0]
    paths = dict.fromkeys(map(os.path.normpath, paths))
    stem = os.path.splitext(os.path.basename(name))[0]
    others = sorted(os.listdir(data_dir)) if os.path.isdir(data_dir) else []
    others = [other for other in others if os.path.splitext(other)[0] == stem]
    found, kinds = ", ".join(others), {os.path.splitext(other)[1][1:] for other in others}
    if others and not folder and kinds <= {*FILE_TYPES}:  # a data set of this project has a folder
        found += ", whose ending names another --task_name"
    raise InputError(
        f"the task needs a file {' or '.join(paths)}. Received: {found or 'no such file'}"
    )


def name_of_file(path: str, usual: str) -> str:
    """Returns a file's name without the `usual` ending, for naming the files derived from it.

    Files derived from new.csv and new.jsonl in one folder thus do not replace each other.
    """
    return os.path.basename(path).removesuffix(usual)


def split_of_file(path: str, usual: str) -> str:
    """Returns the name of the split for a file to predict; arguments as for `name_of_file`."""
    name = name_of_file(path, usual)
    return f"file_{name}" if name in TAKEN_SPLITS else name


# The names of other splits, which a file to predict does not get.
TAKEN_SPLITS = {
    "held_out",
    "train_part",
    *(split for dataset in DATASETS.values() for split in dataset.sources),
}


def _text(value, where):
    if not isinstance(value, str):
        raise InputError(f"{where}: the text must be a string. Received: {value!r}")
    return value.strip()


def _entity(field, column, where):
    """Reads the `Entity` of a column with KLUE-RE's keys."""
    start, last, kind = (field(f"{column}.{key}") for key in ("start_idx", "end_idx", "type"))
    if type(start) is not int or type(last) is not int:
        raise InputError(
            f"{where}: start_idx and end_idx of {column} must be whole numbers. "
            f"Received: {start!r}, {last!r}"
        )
    if kind not in ENTITY_TYPES:
        raise InputError(
            f"{where}: the type of {column} must be one of {', '.join(ENTITY_TYPES)}. "
            f"Received: {kind!r}"
        )
    return Entity(start, last, kind)


def mark_entities(
    text: str, entities: Sequence[Entity], where: str
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Encloses two entities of a text, subject and object, in `ENTITY_MARKERS`; they may overlap.

    Returns:
        The text with the markers, and (first character, end) in it of each entity with its markers.

    Example:
        mark_entities("비틀즈가 썼다", (Entity(0, 2, "ORG"), Entity(5, 5, "PER")), "line 1")[0]
        -> "@ * 단체 * 비틀즈@가 # ^ 인물 ^ 썼#다"
    """
    inserted = []  # (place, a key that nests markers at the same place, number, marker)
    for number, (entity, (begin, end)) in enumerate(zip(entities, ENTITY_MARKERS, strict=True)):
        if not 0 <= entity.start <= entity.last < len(text):
            raise InputError(
                f"{where}: an entity must be inside the {len(text)} characters of its sentence. "
                f"Received: start_idx {entity.start}, end_idx {entity.last}"
            )
        begin, size = begin.format(ENTITY_TYPES[entity.type]), entity.last - entity.start
        inserted.append((entity.start, (1, -size, number), number, begin))
        inserted.append((entity.last + 1, (0, size, -number), number, end))
    marked, done = "", 0
    spans: tuple[list[int], list[int]] = [], []
    for place, (is_begin, *_), number, marker in sorted(inserted):
        marked += text[done:place]
        done = place
        spans[number].append(len(marked) + (0 if is_begin else len(marker)))
        marked += marker
    return marked + text[done:], tuple((first, end) for first, end in spans)


def read_rows(path: str, source: SplitSource) -> Iterator[tuple[str, Callable[[Column], Any]]]:
    """Yields the place of every row of a file and a function from a column to its value.

    The function raises `MissingColumn`, or `OtherColumns` if a table's row has more columns than
    its header or, in a user's own file, more or fewer columns than the first line.
    """
    if path.lower().endswith((".json", ".jsonl", ".parquet")):
        for where, entry in read_objects(path, source.encoding):
            yield where, _field_of_object(entry, where)
        return
    separator, rows = read_cells(path, source.own, source.encoding)
    columns, width = {}, None
    if not isinstance(source.text, int):
        where, header = read_header(rows, path)
        header = [composed(name.strip()) for name in header] if source.own else header
        twice = [name for name in header if name and header.count(name) > 1]
        if twice and source.own:
            raise InputError(f"{where} must name a column once. Received: {twice[0]!r} twice")
        columns, width = {name: i for i, name in enumerate(header)}, len(header)
        needed = (source.text, source.second, source.third, source.label, source.id)
        needed += source.row_filter[:1]
        missing = [name for name in needed if name is not None and name not in columns]
        if missing:
            raise InputError(
                f"{where} must name the columns {', '.join(map(str, missing))}. "
                f"Received: {', '.join(columns)}{_way_out(source)}"
            )
    between = f"separated by {SEPARATORS.get(separator, repr(separator))}"
    for where, cells in rows:
        width = len(cells) if width is None and source.own else width
        wrong = width is not None and (len(cells) != width if source.own else len(cells) > width)
        problem = wrong and f"{width} columns, as the first line, {between}"
        yield where, _field_of_cells(cells, where, columns, problem)


def _way_out(source):
    """Returns the end of a message that says how to name other columns of a user's own file."""
    return " (--text_column, --label_column and others name other columns)" if source.own else ""


def _field_of_cells(cells, where, columns, problem):
    def field(column):
        if problem:
            raise OtherColumns(f"{where} must have {problem}. Received: {len(cells)}")
        index = columns.get(column, column)
        if index >= len(cells):
            raise MissingColumn(
                f"{where} must have at least {index + 1} columns. Received: {len(cells)}"
            )
        return cells[index]

    return field


def _field_of_object(entry, where):
    """Returns a function from a key of a JSON object, or keys joined by ".", to the value."""

    def field(column):
        if column in entry:
            return entry[column]
        value = entry
        for key in column.split("."):
            inner = value if isinstance(value, dict) else {}
            inner = {composed(name): v for name, v in inner.items()}
            if key not in inner:
                raise MissingColumn(f"{where} must have {column!r}. Received: {', '.join(entry)}")
            value = inner[key]
        return value

    return field


def check_members(value: Any) -> tuple[Any, ...] | list[Any] | np.ndarray:
    """Returns `value` if it is a tuple, list or array; raises TypeError for strings, sets, etc."""
    if not isinstance(value, tuple | list | np.ndarray):
        raise TypeError(value)
    return value


def check_strings(*values: Any) -> tuple[str, ...]:
    """Returns the values; raises TypeError if one is not a string."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(value)
    return values
