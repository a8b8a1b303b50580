"""Reads sentences whose named entities are tagged, from the published files.

All formats become one: a text, the spans in it that have a tag each, called units, and their tags
in IOB2: B-X begins an entity of the kind X, I-X goes on with it, O is none.
"""

import os
import re
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.readers import find_file, read_lines


class Format(NamedTuple):
    """A row of the table: how the files of a data set are written.

    Attributes:
        folder: what the folder of its files is called beside those of other tasks.
        files: split -> the name of its file.
        separator: a pattern of what stands between columns.
        columns: how many there are; None: as many as in the file's first line.
        token: the number of the column of what is tagged; the last column is the tag.
        glue: what joins tokens to a text; with "" tokens are single characters.
        tag: how a tag is spelled; `place` is B or I.
        outside: how "O" is.
        comment: a pattern of lines that hold no token but end a sentence; its group `id`, if it
            has one, is the name of the sentence after it.
        tags: all tags in the order of the classes; empty: those of the training file.
        strict: whether I- with nothing before it to go on with is no entity, as where the tags are
            meant to be IOB2 and are counted as they stand; otherwise it begins one.
    """

    folder: str
    files: dict
    separator: str = "[ \t]+"
    columns: int | None = None
    token: int = 0
    glue: str = " "
    tag: str = "{place}-{kind}"
    outside: str = "O"
    comment: str | None = None
    tags: tuple = ()
    strict: bool = False


class Sentence(NamedTuple):
    """A text with its tags."""

    id: str
    text: str
    units: tuple  # of (first character, the one after the last), in the order of the text
    tags: tuple  # a tag for each unit


def tags_of_kinds(kinds):
    """B- and I- of each kind, then "O"."""
    return (*(f"{place}-{kind}" for kind in kinds for place in "BI"), "O")


FORMATS = {
    # The order of the classes is that of KLUE's own program, which takes the tags as they stand.
    "klue-ner": Format(
        "klue-ner-v1.1",
        {split: f"klue-ner-v1.1_{split}.tsv" for split in ("train", "dev", "test")},
        separator="\t",
        columns=2,
        glue="",
        comment=r"##\s*(?P<id>\S*).*",
        tags=tags_of_kinds(("PS", "LC", "OG", "DT", "TI", "QT")),
        strict=True,
    ),
    # Naver and Changwon university, github.com/naver/nlp-challenge: only the training file has
    # tags; parts of it, made elsewhere, serve as the others.
    "naver-ner": Format(
        "data",
        {split: f"{split}/{split}_data" for split in ("train", "dev", "test")},
        separator="\t",
        columns=3,
        token=1,
        tag="{kind}_{place}",
        outside="-",
    ),
    "conll-2003": Format(
        "conll2003",
        {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"},
        comment="-DOCSTART-.*",
        tags=tags_of_kinds(("PER", "ORG", "LOC", "MISC")),
    ),
    # PerModel of whatever else.
    "conll": Format(
        "conll",
        {split: f"{split}.txt" for split in ("train", "dev", "test")},
        comment="-DOCSTART-.*",
    ),
}


def read_tagged(form, split, data_dir, tags=()):
    """Reads all sentences of a split.

    KLUE tags spaces too, but does not score them: they are no units.

    Args:
        form: a row of `FORMATS`.
        split: "train", "dev" or "test".
        data_dir: holds the file, or a folder of the task's name with it.
        tags: all tags that there may be, such as `find_tags` gives; empty: the format's own,
            or any.

    Returns:
        A list of `Sentence`s, and how many tags I- had nothing before them to go on with. In
        CoNLL's first scheme that is how an entity begins, elsewhere it is a slip; they became B-,
        unless the format is strict.

    Raises:
        InputError: names file and line: a file that is missing, empty, not UTF-8 or without
            tokens, a line that is broken, a tag that is unknown.
    """
    if split not in form.files:
        raise InputError(f"the task has {', '.join(form.files)}. Received: {split}")
    path = find_file(form.files[split], data_dir, form.folder)
    known = {spell(form, tag): tag for tag in tags or form.tags}
    edges = " \t" if form.glue else "\t"  # a space may be a token of its own
    sentences, begun, name, columns, rows = [], 0, None, form.columns, []
    for where, line in read_lines(path):
        comment = form.comment and re.fullmatch(form.comment, line)
        if comment or not line.strip(edges):
            begun += _finish(sentences, name, rows, form)
            rows, name = [], comment.groupdict().get("id") if comment else None
            continue
        fields = re.split(form.separator, line.strip(edges))
        columns = columns or max(len(fields), 2)
        if len(fields) != columns or not fields[form.token]:
            raise InputError(f"{where} must have {columns} columns. Received: {line[:60]!r}")
        token = fields[form.token]
        if not form.glue and len(token) != 1:
            raise InputError(f"{where} must tag one character. Received: {token[:60]!r}")
        name = name or where
        rows.append((token, _read_tag(fields[-1], form, known, where)))
    begun += _finish(sentences, name, rows, form)
    if not sentences:
        raise InputError(f"{path} must hold a token. Received: none")
    return sentences, begun


def _finish(sentences, name, rows, form):
    """Appends the sentence of some tokens with tags; how many tags I- of it began with nothing."""
    glue = form.glue
    units, tags, start = [], [], 0
    for token, tag in rows:
        end = start + len(token)
        if glue or token != " ":
            units.append((start, end))
            tags.append(tag)
        start = end + len(glue)
    if not units:
        return 0
    text = glue.join(token for token, _ in rows)
    made = to_iob2(tags)
    sentences.append(Sentence(name, text, tuple(units), tuple(tags if form.strict else made)))
    return sum(new != old for new, old in zip(made, tags, strict=True))


def spell(form, tag):
    """A tag as a format's files have it."""
    return form.outside if tag == "O" else form.tag.format(place=tag[0], kind=tag[2:])


def _read_tag(value, form, known, where):
    """A tag as "B-X", "I-X" or "O"; where tags are `known`, one of those."""
    if value in known:
        return known[value]
    pattern = form.tag.format(place="(?P<place>[BI])", kind="(?P<kind>.+)")
    match = re.fullmatch(pattern, value)
    if known or not (match or value == form.outside):
        allowed = ", ".join(known or [spell(form, tag) for tag in tags_of_kinds("X")])
        raise InputError(f"{where}: the tag must be one of {allowed}. Received: {value[:60]!r}")
    return f"{match['place']}-{match['kind']}" if match else "O"


def to_iob2(tags):
    """Tags of a sentence with a B- wherever an entity begins."""
    made, before = [], "O"
    for tag in tags:
        if tag[0] == "I" and before[1:] != tag[1:]:
            tag = "B" + tag[1:]
        made.append(tag)
        before = tag
    return made


def find_tags(sentences):
    """All tags of the kinds that sentences have, in alphabetical order, with "O" as the last."""
    return tags_of_kinds(sorted({tag[2:] for each in sentences for tag in each.tags} - {""}))


class TaggingDataset(NamedTuple):
    """A format with the tags that are told apart, and the splits that there are.

    Attributes:
        form: a row of `FORMATS`.
        tags: in the order of the classes.
        splits: split -> whether it has labels, which all have.
    """

    form: Format
    tags: tuple
    splits: dict


def tagging_task(form, data_dir, tags=()):
    """Makes a `TaggingDataset` of the files in a folder.

    Args:
        form: a row of `FORMATS`.
        data_dir: holds the files, or a folder of the task's name with them.
        tags: in the order of the classes; empty: the format's, or those of the training file.

    Raises:
        InputError: no file, or no training file to find the tags in, or none there;
            `read_tagged`'s.
    """
    splits = {}
    for split, name in form.files.items():
        paths = [os.path.join(data_dir, folder, name) for folder in ("", form.folder)]
        if any(map(os.path.isfile, paths)):
            splits[split] = True
    if not splits:
        find_file(form.files["train"], data_dir, form.folder)
    tags = tags or form.tags or find_tags(read_tagged(form, "train", data_dir)[0])
    if len(tags) < 2:
        raise InputError(
            f"{form.files['train']} in {data_dir} must hold an entity. Received: {tags[0]} alone"
        )
    return TaggingDataset(form, tuple(tags), splits)


def read_dataset_split(dataset, split, data_dir):
    """`read_tagged` for a `TaggingDataset`; the count as what is told of the rows."""
    sentences, begun = read_tagged(dataset.form, split, data_dir, dataset.tags)
    what = (
        "that begin nothing, no entities" if dataset.form.strict else "that began an entity, now B-"
    )
    return sentences, {f"I- {what}": begun} if begun else {}
