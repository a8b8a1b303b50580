"""Reads the texts that vectors are learned from: scored pairs, pairs, triples or single texts."""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from bert_common.errors import InputError
from bert_common.text_encoding import SAMPLE_BYTES, detect_encoding
from finetuning.datasets import DATASETS, Dataset, SplitSource
from finetuning.labels import is_empty, read_label
from finetuning.readers import SPLITS, files_in, read_rows, read_split
from finetuning.tables import check_column, column_names, only_column, say_columns

# The usual names of each column; a file has at most one of them.
COLUMN_NAMES = {
    "text": (
        "text", "sentence1", "anchor", "query", "question", "sentence", "premise", "문장1",
        "문장", "질문", "텍스트", "제목",
    ),
    "second": (
        "second", "sentence2", "positive", "passage", "answer", "context", "hypothesis", "문장2",
        "답변", "대답", "본문",
    ),
    "third": ("third", "sentence3", "negative", "hard_negative", "문장3", "오답"),
    "label": ("score", "label", "similarity", "점수", "유사도"),
}  # fmt: skip

# The data sets of inferences, from which triples are made, and the data sets of scored pairs.
INFERENCES = tuple(n for n, d in DATASETS.items() if {"entailment", "contradiction"} <= {*d.labels})
SCORED = tuple(
    name
    for name, dataset in DATASETS.items()
    if not dataset.labels and dataset.sources["train"].second is not None
)

# What a model of vectors can be trained for.
OBJECTIVES = ("cosine", "ranking", "simcse", "both")

_SCORES = Dataset("", {}, ())


class SimilarityExample(NamedTuple):
    """Texts that belong together, or a pair with a score."""

    id: str
    # A text; a text and its partner; or these and a third text with a different meaning.
    texts: tuple[str, ...]
    score: float | None = None
    source: int = 0  # the index of its file if there are several training files

    @property
    def text(self) -> str:
        """The first text."""
        return self.texts[0]


class Columns(NamedTuple):
    """The names of the columns in a user's own files; None: they are recognized."""

    text: str | None = None
    second: str | None = None
    third: str | None = None
    label: str | None = None


class Form(NamedTuple):
    """The composition of a split's examples."""

    texts: int  # the number of texts in each example
    scored: bool

    @property
    def objective(self) -> str:
        """The objective for such examples, one of `OBJECTIVES`."""
        if self.scored:
            return "cosine"
        return "ranking" if self.texts > 1 else "simcse"

    def __str__(self) -> str:
        kind = {1: "texts", 2: "pairs", 3: "triples"}[self.texts]
        return f"scored {kind}" if self.scored else kind


@dataclasses.dataclass(frozen=True)
class SimilarityDataset:
    """The files of every split."""

    name: str  # a row of `DATASETS`, one of `FILE_TYPES`, or `OWN_FILES` (`finetuning.tables`)
    # Split -> its files; if `name` is a row of `DATASETS`, as they are there.
    sources: Mapping[str, SplitSource]
    own: tuple[str, ...] = ()  # the splits whose files are the user's own
    # If there are several training files, each as a data set with this file as its "train".
    parts: tuple["SimilarityDataset", ...] = ()
    shares: tuple[float, ...] = ()  # each part's share of a batch; empty: by number of examples

    @property
    def splits(self) -> dict[str, bool]:
        """A map from each split to whether it has pairs, on which vectors can be measured."""
        return {split: self.form(split).texts > 1 for split in self.sources}

    def form(self, split: str) -> Form:
        """Returns the form of a split's examples."""
        if split == "train" and self.parts:
            forms = self.forms
            return Form(max(form.texts for form in forms), all(form.scored for form in forms))
        source = self.sources[split]
        if split not in self.own and self.name in INFERENCES:
            return Form(3, False)
        count = sum(c is not None for c in (source.text, source.second, source.third))
        return Form(count, source.label is not None)

    @property
    def part_names(self) -> list[str]:
        """The names of several files in messages, without their folders if still unambiguous."""
        names = [part.name for part in self.parts]
        short = [os.path.basename(name) for name in names]
        return short if len({*short}) == len(short) else names

    @property
    def forms(self) -> list[Form]:
        """The form of the training examples, for each of several files."""
        return [part.form("train") for part in self.parts] or [self.form("train")]

    @property
    def objective(self) -> str:
        """The objective that suits the training examples, the default of --objective."""
        found = {form.objective for form in self.forms}
        if len(found) == 1:
            return found.pop()
        return "both" if "cosine" in found else "ranking"


def known_dataset(name: str) -> SimilarityDataset:
    """Returns the data set of a name in `INFERENCES` or `SCORED`, without unlabeled splits."""
    sources = DATASETS[name].sources
    return SimilarityDataset(name, {s: x for s, x in sources.items() if x.label is not None})


def folder_dataset(
    file_type: str, folder: str, columns: Columns, encoding: str | None = None
) -> SimilarityDataset:
    """Returns the data set of the files train, dev and test that exist in a folder."""
    files = files_in(folder, [file_type])
    return with_files(SimilarityDataset(file_type, {}), files, columns, encoding)


def with_files(
    dataset: SimilarityDataset,
    files: Mapping[str, str],
    columns: Columns,
    encoding: str | None = None,
) -> SimilarityDataset:
    """Returns the data set with a user's own files, split -> path, as some of its splits."""
    found = {split: own_source(path, columns, encoding) for split, path in files.items()}
    sources = {**dataset.sources, **found}
    ordered = {split: sources[split] for split in (*SPLITS, *sources) if split in sources}
    return dataclasses.replace(dataset, sources=ordered, own=(*dataset.own, *found))


def own_source(path: str, columns: Columns, encoding: str | None = None) -> SplitSource:
    """Returns the source of a user's own file, with the given columns or columns found in it.

    A .json file may be in SQuAD's format (`is_of_questions`), where the partners of the questions
    are the texts that they are about. The encoding is a key of `bert_common.text_encoding.NAMES`;
    None: it is recognized.
    """
    files = (os.path.abspath(path),)
    source = SplitSource(files, "question", "context", own=True, encoding=encoding)
    if is_of_questions(source):
        given = [
            f"--{kind}_column" for kind in Columns._fields if getattr(columns, kind) is not None
        ]
        if given:
            raise InputError(
                f"{given[0]} must be left out where a file is in SQuAD's format, whose questions "
                f"and texts are the pairs. Received: {path}"
            )
        return source
    # Of all objects, so that what only some have is missed in the others, not passed over.
    found = _find_columns(column_names(path, encoding, of_all=True), columns, path)
    if found.third is not None and found.label is not None:
        raise InputError(
            "a file must have either a score or a third text that means something else. Received: "
            f"{path} with both, columns {found.label} and {found.third}"
        )
    if found.third is not None and found.second is None:  # it would be taken for the partner
        raise InputError(
            "a file with a third text must have a second one, the text's partner "
            f"(--second_column). Received: {path} with {found.text} and {found.third}"
        )
    assert found.text is not None  # otherwise `_find_columns` raises
    return source._replace(
        text=found.text, second=found.second, third=found.third, label=found.label
    )


def pairs_of_questions(questions: Iterable[Any], path: str) -> list[SimilarityExample]:
    """Pairs a file's `Question`s with their texts; raises an `InputError` for empty strings."""
    for each in questions:
        for name in ("question", "context"):
            _check_text(getattr(each, name), f"{path} question {each.id!r}", name)
    return [SimilarityExample(q.id, (q.question, q.context)) for q in questions]


def own_texts(
    path: str, column: str | None = None, shown: str | None = None, encoding: str | None = None
) -> list[tuple[str, ...]]:
    """Reads the texts of one column of a user's own file, each in a tuple.

    Rows whose text is empty or null are left out, and their number is printed.

    Args:
        column: Default: the only column with a usual name of first texts.
        shown: a column whose values are added to the tuples as strings; "" for null.
    """
    names = column_names(path, encoding)
    found = _find_columns(names, Columns(column), path, ("text",)).text
    assert found is not None  # otherwise `_find_columns` raises
    if shown is not None:
        check_column(names, shown, "--show_column", path)
    source = SplitSource((path,), found, shown, own=True, encoding=encoding)
    columns = (found,) if shown is None else (found, shown)
    rows, left_out = [], 0
    for where, field in read_rows(path, source):
        text, *others = map(field, columns)
        if is_empty(text):
            left_out += 1
            continue
        _check_text(text, where, f"column {found!r}")
        rows.append((text.strip(), *("" if other is None else str(other) for other in others)))
    if not rows:
        raise InputError(f"{path} must hold a text in column {found!r}. Received: none")
    if left_out:
        print(f"{path}: rows without a text, left out: {left_out:,}")
    return rows


def is_of_questions(source: SplitSource) -> bool:
    """Returns True if a user's own file is in SQuAD's format, JSON that is not a list."""
    path = source.files[0]
    if not (source.own and path.lower().endswith(".json")):
        return False
    with open(path, "rb") as file:
        sample = file.read(SAMPLE_BYTES)
    text = sample.decode(source.encoding or detect_encoding(sample), "replace")
    return text.removeprefix("\ufeff").lstrip().startswith("{")


def _find_columns(
    names: Sequence[str], given: Columns, path: str, kinds: Sequence[str] = tuple(COLUMN_NAMES)
) -> Columns:
    """Returns the columns of some kinds, either given or with a name in `COLUMN_NAMES`."""
    found: dict[str, str | None] = {}
    for kind, known in ((kind, COLUMN_NAMES[kind]) for kind in kinds):
        column, flag = getattr(given, kind), f"--{kind}_column"
        if column is not None:
            check_column(names, column, flag, path)
        elif kind == "text" or any(name.strip().lower() in known for name in names):
            column = only_column(names, known, flag, path)
        found[kind] = column
    if found.get("second") is None and found.get("label") is not None:
        found["label"] = None  # the class of a single text, which has no use here
    chosen = {kind: name for kind, name in found.items() if name is not None}
    if len({*chosen.values()}) < len(chosen):
        raise InputError(
            "--text_column, --second_column and so on must name different columns. Received: "
            f"{path} with {', '.join(chosen.values())}"
        )
    say_columns(path, chosen)
    return Columns(**found)


def read_examples(
    dataset: SimilarityDataset, split: str, data_dir: str
) -> tuple[list[SimilarityExample], dict[str, int]]:
    """Reads the examples of a split, and counts what was left out.

    Empty texts or negative scores in a user's own file raise an `InputError`.
    """
    if split in dataset.own:
        return _read_own(dataset.sources[split]), {}
    examples, left_out = read_split(DATASETS[dataset.name], split, data_dir)
    counts = {f"left out ({why})": count for why, count in left_out.items()}
    if dataset.name in INFERENCES:
        triples, without = _make_triples(examples, DATASETS[dataset.name].labels)
        return triples, {**counts, "premises without entailment or contradiction": without}
    return [
        SimilarityExample(e.id, (e.text, e.second or ""), cast(float, e.label)) for e in examples
    ], counts


def _make_triples(examples, labels):
    """Makes triples of a premise, each sentence that it entails, and one that contradicts it.

    As SimCSE (arXiv:2104.08821, section 5). Contradictions are reused if they are too few.
    """
    premises: dict[str, dict[str, list[Any]]] = {}
    for example in examples:
        premises.setdefault(example.text, {}).setdefault(labels[example.label], []).append(example)
    triples, without = [], 0
    for text, found in premises.items():
        others = found.get("contradiction", [])
        if not others or "entailment" not in found:
            without += 1
            continue
        for number, partner in enumerate(found["entailment"]):
            texts = (text, partner.second, others[number % len(others)].second)
            triples.append(SimilarityExample(partner.id, texts))
    return triples, without


def _check_text(text, where, name):
    """Raises an `InputError` if a text is empty or not a string; `name` says which text."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f"{where}: a text must be a string that is not empty. Received: {text!r} in {name}"
        )


def _read_own(source: SplitSource) -> list[SimilarityExample]:
    """Reads the examples of a user's own file."""
    path = source.files[0]
    columns = [c for c in (source.text, source.second, source.third) if c is not None]
    examples = []
    for where, field in read_rows(path, source):
        texts = tuple(map(field, columns))
        value = None if source.label is None else field(source.label)
        for column, text in zip(columns, texts, strict=True):
            _check_text(text, where, f"column {column!r}")
        score = None
        if source.label is not None:
            if is_empty(value):
                raise InputError(f"{where}: the score must not be empty. Received: {value!r}")
            score = cast(float, read_label(_SCORES, value, where))
            if score < 0:
                raise InputError(f"{where}: the score must not be below 0. Received: {value!r}")
        examples.append(SimilarityExample(where, tuple(t.strip() for t in texts), score))
    if not examples:
        raise InputError(f"{path} must hold an example. Received: none")
    return examples
