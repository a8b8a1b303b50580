"""Reads sentences without tags for prediction, from plain text or from a file of tokens."""

import collections
import itertools
import os
import re
from collections.abc import Iterable

from bert_common.errors import InputError
from finetuning.metrics import entities
from finetuning.ner.data import (
    NerDataset,
    Sentence,
    TaggedFileFormat,
    UntaggedFile,
    is_tag,
    place_tokens,
    read_blocks,
    read_tagged,
    split_line,
    untagged_sentence,
)
from finetuning.readers import find_file, split_of_file
from finetuning.tables import ENDINGS, read_lines

# The forms of a file, and what messages call them.
DESCRIPTIONS = {
    "tagged": "tokens with their tags",
    "tokens": "tokens without tags, a blank line between sentences",
    "text": "plain text, a sentence a line",
}
FORMS = tuple(DESCRIPTIONS)

# The usual ending of a file to predict.
USUAL_ENDING = ".txt"

# The number of lines from which the form of a file is recognized.
RECOGNIZED_LINES = 1000


def add_untagged(
    dataset: NerDataset, data_dir: str, predict_file: str | None = None, form: str = "auto"
) -> NerDataset:
    """Adds files that may lack tags to a data set: its own test file, and a file to predict.

    `data_dir` is unused if there is no test file. The form is one of `FORMS`, or "auto" to
    recognize it; a file without a sentence then raises an `InputError`.
    """
    file_format, files = dataset.file_format, []
    if "test" in dataset.splits:
        path = find_file(file_format.files["test"], data_dir, file_format.folder)
        own_form = recognize_form(path, file_format)
        if own_form != "tagged":
            files.append(UntaggedFile("test", path, own_form))
    if predict_file:
        if form == "auto":
            form = recognize_form(predict_file, file_format)
            check_is_text(predict_file, form)
        files.append(UntaggedFile(split_of_file(predict_file, USUAL_ENDING), predict_file, form))
    splits = {**dataset.splits, **{file.split: False for file in files}}
    return dataset._replace(splits=splits, untagged=tuple(files))


def read_dataset_split(
    dataset: NerDataset, split: str, data_dir: str
) -> tuple[list[Sentence], dict[str, int]]:
    """Reads the sentences of a split, with or without tags.

    Returns:
        The sentences, and a description of I- tags that continue no entity -> their number.
    """
    file_format = dataset.file_format
    for file in dataset.untagged:
        if file.split == split:
            if file.form != "tagged":
                return read_untagged(file.path, file.form, file_format), {}
            folder, name = os.path.split(file.path)
            data_dir, file_format = folder or ".", file_format._replace(files={split: name})
            break
    sentences, loose = read_tagged(file_format, split, data_dir, dataset.tags)
    outcome = "not counted as entities" if file_format.strict else "changed to B-"
    return sentences, {f"I- tags without an entity to continue, {outcome}": loose} if loose else {}


def count_kinds(dataset: NerDataset, sentences: Iterable[Sentence]) -> dict[str, int]:
    """Counts the entities of each kind in sentences; {} if no sentence is tagged."""
    kinds = dict.fromkeys(tag[2:] for tag in dataset.tags if tag != "O")
    tagged = [sentence for sentence in sentences if sentence.tagged]
    counts = collections.Counter(kind for s in tagged for _, _, kind in entities(s.tags))
    return {kind: counts[kind] for kind in kinds} if tagged else {}


def recognize_form(path: str, file_format: TaggedFileFormat) -> str:
    """Returns the form of a file, one of `FORMS`.

    It is "tagged" if at least half of its lines end in a column with a tag. Otherwise it is
    "tokens" if every line is one token and blank lines separate sentences; else "text".
    """
    lines = []
    for _, line in read_lines(path):
        if not (file_format.comment and re.fullmatch(file_format.comment, line)):
            lines.append(split_line(line, file_format))
        if len(lines) == RECOGNIZED_LINES:
            break
    rows = [fields for fields in lines if fields]
    if not rows:
        raise InputError(f"{path} must hold a sentence. Received: none")
    columns = file_format.token + 1  # without a tag
    known = [row for row in rows if len(row) > columns and is_tag(row[-1], file_format)]
    if 2 * len(known) >= len(rows):
        return "tagged"
    blocks = [len([*group]) for is_filled, group in itertools.groupby(lines, bool) if is_filled]
    single = all(len(fields) == columns for fields in rows)
    if not file_format.glue:
        single = single and all(len(fields[file_format.token]) == 1 for fields in rows)
    # Whether the lines are grouped into sentences, which a number before each token shows too.
    grouped = max(blocks) > 1 and (len(blocks) > 1 or columns > 1)
    return "tokens" if single and grouped else "text"


def check_is_text(path: str, form: str) -> None:
    """Raises an `InputError` if the lines of a table or of JSON were taken for sentences."""
    endings = tuple(ending for ending in ENDINGS if ending != ".tsv")  # tagged files have it too
    if form == "text" and path.lower().endswith(endings):
        raise InputError(
            "a file to find entities in must hold only the texts, one per line, not "
            f"{', '.join(endings)} (--predict_format=text reads every line as it is). "
            f"Received: {path}"
        )


def read_untagged(path: str, form: str, file_format: TaggedFileFormat) -> list[Sentence]:
    """Reads the untagged sentences of a file whose form is "tokens" or "text".

    Each sentence is named by file and line. The format defines what a token is.
    """
    if form == "text":
        sentences = [
            untagged_sentence(where, line.rstrip(), file_format)  # keeps offsets in the line
            for where, line in read_lines(path)
            if line.strip()
        ]
    else:
        sentences = list(_read_tokens(path, file_format))
    if not sentences:
        raise InputError(f"{path} must hold a sentence. Received: none")
    return sentences


def _read_tokens(path, file_format):
    columns = file_format.token + 1
    for name, lines in read_blocks(path, file_format):
        for where, line, fields in lines:
            if len(fields) != columns or not fields[file_format.token]:
                raise InputError(
                    f"{where} must have {columns} columns: a token, without a tag. "
                    f"Received: {line[:60]!r}"
                )
        tokens = (fields[file_format.token] for _, _, fields in lines)
        text, places = place_tokens(tokens, file_format)
        units = tuple(filter(None, places))
        yield Sentence(name, text, units, ("O",) * len(units), tagged=False)
