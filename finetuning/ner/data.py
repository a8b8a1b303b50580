"""Reads sentences with tagged named entities from the published files.

All formats are converted to one: a text, its units (the tagged spans) and their tags in IOB2, where
B-X begins an entity of kind X, I-X continues it, and O is outside of entities.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.ner.labels import iob2_tag
from finetuning.readers import find_file
from finetuning.tables import composed, first_of, read_lines


class TaggedFileFormat(NamedTuple):
    """The format of a data set's files."""

    folder: str  # the usual name of the folder that holds its files
    files: dict[str, str]  # split -> the name of its file
    separator: str = "[ \t]+"  # a pattern that matches the separator of columns
    columns: int | None = None  # the number of columns; None: as in the file's first line
    token: int = 0  # the index of the column with the token; the last column is the tag
    glue: str = " "  # joins tokens into a text; if it is "", tokens are single characters
    tag: str = "{place}-{kind}"  # how a tag is spelled; `place` is B or I
    outside: str = "O"  # how "O" is spelled
    # A pattern of lines that have no token and end a sentence. Its group `id`, if it has one, is
    # the name of the next sentence.
    comment: str | None = None
    # All tags, in the order of the classes; empty: the tags of the training file.
    tags: tuple[str, ...] = ()
    # Whether an I- that continues no entity is kept and not counted as an entity, as in data that
    # are scored as strict IOB2; otherwise it becomes B-.
    strict: bool = False
    any_form: bool = False  # whether tags may be written in any form that `iob2_tag` knows


class Sentence(NamedTuple):
    """A text with the tags of its units."""

    id: str
    text: str
    units: tuple[tuple[int, int], ...]  # (first character, end), in the order of the text
    tags: tuple[str, ...]  # one for each unit
    tagged: bool = True  # False: it was not annotated, and all `tags` are "O"


def tags_of_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """Returns all tags: B- and I- of each kind, then "O"."""
    return (*(f"{place}-{kind}" for kind in kinds for place in "BI"), "O")


FORMATS = {
    # The classes are in the order of KLUE's own program, which uses the tags unchanged.
    "klue-ner": TaggedFileFormat(
        "klue-ner-v1.1",
        {split: f"klue-ner-v1.1_{split}.tsv" for split in ("train", "dev", "test")},
        separator="\t",
        columns=2,
        glue="",
        comment=r"##\s*(?P<id>\S*).*",
        tags=tags_of_kinds(("PS", "LC", "OG", "DT", "TI", "QT")),
        strict=True,
    ),
    # By Naver and Changwon National University, github.com/naver/nlp-challenge. Only the training
    # file was published with tags; users split off the others themselves.
    "naver-ner": TaggedFileFormat(
        "data",
        {split: f"{split}/{split}_data" for split in ("train", "dev", "test")},
        separator="\t",
        columns=3,
        token=1,
        tag="{kind}_{place}",
        outside="-",
    ),
    "conll-2003": TaggedFileFormat(
        "conll2003",
        {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"},
        comment="-DOCSTART-.*",
        tags=tags_of_kinds(("PER", "ORG", "LOC", "MISC")),
    ),
    # Any other data in this format.
    "conll": TaggedFileFormat(
        "conll",
        {split: f"{split}.txt" for split in ("train", "dev", "test")},
        comment="-DOCSTART-.*",
        any_form=True,
    ),
}


def format_of(task_name: str, source: str) -> TaggedFileFormat:
    """Returns the format that a model's folder records; `source` is the model, for the message."""
    if task_name not in FORMATS:
        raise InputError(
            f"the recorded task_name must be one of {', '.join(FORMATS)}. "
            f"Received: {source} with {task_name:.60}"
        )
    return FORMATS[task_name]


def read_tagged(
    file_format: TaggedFileFormat, split: str, data_dir: str, tags: Sequence[str] = ()
) -> tuple[list[Sentence], int]:
    """Reads all sentences of a split.

    Spaces are not units: KLUE tags them, but does not score them.

    Args:
        data_dir: holds the file, or a folder `file_format.folder` with it.
        tags: all tags that may occur, such as the result of `find_tags`. Default: the format's
            tags, or any tag.

    Returns:
        The sentences, and the number of I- tags that continued no entity. Such a tag begins an
        entity in CoNLL's first scheme, elsewhere it is a mistake; it becomes B- unless `strict`.

    Raises:
        InputError: a file is missing, empty, not UTF-8 or without tokens, a line is malformed or a
            tag unknown; names file and line.
    """
    path = find_file(file_format.files[split], data_dir, file_format.folder)
    known = {spell(file_format, tag): tag for tag in tags or file_format.tags}
    # Models of transformers and of earlier versions may have tags that are not composed.
    known = {composed(name): tag for name, tag in known.items()} | known
    sentences: list[Sentence] = []
    loose, columns = 0, file_format.columns
    for name, lines in read_blocks(path, file_format):
        rows = []
        for where, line, fields in lines:
            columns = columns or max(len(fields), 2)
            if len(fields) != columns or not fields[file_format.token]:
                raise InputError(f"{where} must have {columns} columns. Received: {line[:60]!r}")
            token = fields[file_format.token]
            if not file_format.glue and len(token) != 1:
                raise InputError(f"{where} must tag one character. Received: {token[:60]!r}")
            rows.append((token, _read_tag(fields[-1], file_format, known, where)))
        loose += _add_sentence(sentences, name, rows, file_format)
    if not sentences:
        raise InputError(f"{path} must hold a token. Received: none")
    return sentences, loose


def split_line(line: str, file_format: TaggedFileFormat) -> list[str]:
    """Returns the fields of a line; [] if the line is blank."""
    line = line.strip(" \t" if file_format.glue else "\t")  # a space may be a token
    return re.split(file_format.separator, line) if line else []


def read_blocks(
    path: str, file_format: TaggedFileFormat
) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """Yields (name, lines) of each sentence in a file; each line is (place, line, fields).

    A sentence ends at a blank line or a comment, which may name the next sentence. Otherwise the
    name is the place of the first line.
    """
    lines: list[tuple[str, str, list[str]]] = []
    name = None
    for where, line in read_lines(path):
        comment = file_format.comment and re.fullmatch(file_format.comment, line)
        fields = [] if comment else split_line(line, file_format)
        if fields:
            lines.append((where, line, fields))
            continue
        if lines:
            yield name or lines[0][0], lines
        lines, name = [], comment.groupdict().get("id") if comment else None
    if lines:
        yield name or lines[0][0], lines


def place_tokens(
    tokens: Iterable[str], file_format: TaggedFileFormat
) -> tuple[str, list[tuple[int, int] | None]]:
    """Joins tokens into a text; also returns their places in it, None for a space (not a unit)."""
    places: list[tuple[int, int] | None] = []
    text = ""
    for token in tokens:
        text += file_format.glue if places else ""
        is_unit = file_format.glue or token != " "
        places.append((len(text), len(text) + len(token)) if is_unit else None)
        text += token
    return text, places


def _add_sentence(sentences, name, rows, file_format):
    """Appends a sentence of (token, tag) rows; returns the number of I- that continued nothing."""
    text, places = place_tokens((token for token, _ in rows), file_format)
    tags = [tag for place, (_, tag) in zip(places, rows, strict=True) if place]
    if not tags:
        return 0
    fixed = to_iob2(tags)
    kept = tuple(tags if file_format.strict else fixed)
    sentences.append(Sentence(name, text, tuple(filter(None, places)), kept))
    return sum(new != old for new, old in zip(fixed, tags, strict=True))


def untagged_sentence(name: str, text: str, file_format: TaggedFileFormat) -> Sentence:
    """Makes a `Sentence` of any text, with the units of a format's files; all tags are "O"."""
    # If the glue is "", units are characters, otherwise words.
    pattern = r"\S+" if file_format.glue else "[^ ]"
    units = tuple(match.span() for match in re.finditer(pattern, text))
    return Sentence(name, text, units, ("O",) * len(units), tagged=False)


def spell(file_format: TaggedFileFormat, tag: str) -> str:
    """Returns a tag as a format's files spell it."""
    return file_format.outside if tag == "O" else file_format.tag.format(place=tag[0], kind=tag[2:])


def is_tag(value: str, file_format: TaggedFileFormat) -> bool:
    """Returns True if a text may be a tag of a format's files."""
    try:
        _read_tag(value, file_format, {}, "")
    except InputError:
        return False
    return True


def _read_tag(value, file_format, known, where):
    """Reads a file's tag as "B-X", "I-X" or "O"; if tags are `known`, it must be one of them.

    A tag that is not known as it is written is `composed`.
    """
    value = value if value in known else composed(value)
    if value in known:
        return known[value]
    pattern = file_format.tag.format(place="(?P<place>[BI])", kind="(?P<kind>.+)")
    if match := re.fullmatch(pattern, value):
        tag = f"{match['place']}-{match['kind']}"
    elif value == file_format.outside:
        tag = "O"
    else:
        tag = iob2_tag(value) if file_format.any_form else None
    if tag and known:
        tag = known.get(spell(file_format, tag))
    if tag is None:
        possible = dict.fromkeys(known.values()) or tags_of_kinds("X")
        allowed = first_of([spell(file_format, tag) for tag in possible])
        raise InputError(f"{where}: the tag must be one of {allowed}. Received: {value[:60]!r}")
    if "," in tag:  # commas separate tags in the model's folder
        raise InputError(f"{where}: a tag must not hold a comma. Received: {value[:60]!r}")
    return tag


def to_iob2(tags: Iterable[str]) -> list[str]:
    """Returns the tags of a sentence, with B- wherever an entity begins."""
    fixed, before = [], "O"
    for tag in tags:
        if tag[0] == "I" and before[1:] != tag[1:]:
            tag = "B" + tag[1:]
        fixed.append(tag)
        before = tag
    return fixed


def find_tags(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """Returns the tags of all kinds in sentences, in alphabetical order, with "O" last."""
    return tags_of_kinds(sorted({tag[2:] for each in sentences for tag in each.tags} - {""}))


class UntaggedFile(NamedTuple):
    """A file of a data set, or a file to predict, that may lack tags."""

    split: str  # its name among the splits and in the names of the predictions' files
    path: str
    form: str  # one of `finetuning.ner.untagged.FORMS`


class NerDataset(NamedTuple):
    """The data of a run: files of a format, with their tags and splits."""

    file_format: TaggedFileFormat  # a row of `FORMATS`
    tags: tuple[str, ...]  # in the order of the classes
    splits: dict[str, bool]  # each split whose file exists -> whether it has tags
    untagged: tuple[UntaggedFile, ...] = ()  # the files of the splits without tags


def make_ner_dataset(
    file_format: TaggedFileFormat, data_dir: str, tags: Sequence[str] = ()
) -> NerDataset:
    """Makes a data set of the files in a folder, or in its folder `file_format.folder`.

    The tags are in the order of the classes. Default: the format's tags, or the tags of the
    training file, which must then exist and have an entity.
    """
    splits = {}
    for split, name in file_format.files.items():
        paths = [os.path.join(data_dir, folder, name) for folder in ("", file_format.folder)]
        if any(map(os.path.isfile, paths)):
            splits[split] = True
    if not splits:
        find_file(file_format.files["train"], data_dir, file_format.folder)
    tags = tags or file_format.tags or find_tags(read_tagged(file_format, "train", data_dir)[0])
    if len(tags) < 2:
        raise InputError(
            f"{file_format.files['train']} in {data_dir} must hold an entity. "
            f"Received: {tags[0]} alone"
        )
    return NerDataset(file_format, tuple(tags), splits)
