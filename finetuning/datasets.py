"""Lists the classification and regression data sets with their files, labels and metrics.

A data set is a table row, not a class. A column is given by its name in the header, by a JSON key
("labels.real-label" is a nested key) or, in files without a header, by its number from 0.
"""

from typing import NamedTuple

# A column's name, or its number, counted from 0.
Column = str | int


class SplitSource(NamedTuple):
    """Locates the examples of one split: files of one format, and their columns."""

    # File names in the data set's folder. A .json file holds a list of objects, a .jsonl file one
    # object per line; other files are tables: .parquet, .csv, or else tab-separated and, unless
    # `own`, without quoting.
    files: tuple[str, ...]
    text: Column  # the column of the sentence
    second: Column | None = None  # the column of the second sentence
    label: Column | None = None  # the column of the label; None where labels are not published
    id: Column | None = None  # the column of the example's name; None: named after file and line
    # (column, value): rows with a different value in that column are skipped
    row_filter: tuple[str, ...] = ()
    # Known defects of the published files; rows with them are left out and counted. "short": too
    # few columns; "NS": a sentence that was not translated and is given as "NS".
    left_out: tuple[str, ...] = ()
    # The columns of the sentence's subject and object entities, whose relation is the label.
    # `finetuning.readers.mark_entities` marks them in the text.
    entities: tuple[str, ...] = ()
    # Whether the files are a user's own, all of whose rows must have the same number of columns.
    own: bool = False
    encoding: str | None = None  # of a user's own files; None: recognized
    part: str | None = None  # "train" or "dev": a part of a single file that is split 9:1
    third: Column | None = None  # the column of a third text; only run_similarity reads it


class Dataset(NamedTuple):
    """A data set for classification or regression."""

    folder: str  # the usual name of the folder that holds its files
    sources: dict[str, SplitSource]  # split -> `SplitSource`
    # The labels as the files spell them, in the order of the classes; empty for regression, where
    # the label is a number.
    labels: tuple[str, ...]
    # Keys of METRICS or, except for the first, of PROBABILITY_METRICS in `finetuning.metrics`. The
    # first metric chooses the best checkpoint.
    metrics: tuple[str, ...] = ("accuracy",)
    aliases: dict[str, str] = {}  # other spellings of labels -> label
    multi_label: bool = False  # whether an example may have any number of labels

    @property
    def splits(self) -> dict[str, bool]:
        """Maps each split to whether its labels are published."""
        return {split: source.label is not None for split, source in self.sources.items()}


# The classes of GLUE and XNLI are in the order of google-research's programs, so that heads trained
# with these programs fit; the classes of KLUE are in the order of KLUE's programs.
_BINARY = ("0", "1")
_NLI = ("contradiction", "entailment", "neutral")
_ENTAILMENT = ("entailment", "not_entailment")
_TOPICS = ("IT과학", "경제", "사회", "생활문화", "세계", "스포츠", "정치")
# relation_list.json of KLUE-RE, in its order.
_RELATIONS = (
    "no_relation", "org:dissolved", "org:founded", "org:place_of_headquarters",
    "org:alternate_names", "org:member_of", "org:members", "org:political/religious_affiliation",
    "org:product", "org:founded_by", "org:top_members/employees",
    "org:number_of_employees/members", "per:date_of_birth", "per:date_of_death",
    "per:place_of_birth", "per:place_of_death", "per:place_of_residence", "per:origin",
    "per:employee_of", "per:schools_attended", "per:alternate_names", "per:parents", "per:children",
    "per:siblings", "per:spouse", "per:other_family", "per:colleagues", "per:product",
    "per:religion", "per:title",
)  # fmt: skip


def _splits(source, unlabelled=(), **files):
    """Returns a copy of `source` for each split, with its files; `unlabelled` ones lack a label."""
    return {
        split: source._replace(
            files=(names,) if isinstance(names, str) else names,
            label=None if split in unlabelled else source.label,
        )
        for split, names in files.items()
    }


def _glue(text, second=None, label="label", id=None, left_out=(), of_test=None):
    """Returns a GLUE task's splits; test has no labels, and `of_test` replaces its columns."""
    source = SplitSource((), text, second, label, id, left_out=left_out)
    sources = _splits(source, ("test",), train="train.tsv", dev="dev.tsv", test="test.tsv")
    return {**sources, "test": sources["test"]._replace(**(of_test or {}))}


def _klue(name, text, second, label, entities=()):
    """Returns the splits of a KLUE task, whose test set was not published."""
    source = SplitSource((), text, second, label, "guid", entities=entities)
    return _splits(source, train=f"{name}-v1.1_train.json", dev=f"{name}-v1.1_dev.json")


_MNLI = _splits(
    SplitSource((), "sentence1", "sentence2", "gold_label", "index"),
    ("test", "test_mismatched"),
    train="train.tsv",
    dev="dev_matched.tsv",
    dev_mismatched="dev_mismatched.tsv",
    test="test_matched.tsv",
    test_mismatched="test_mismatched.tsv",
)


DATASETS = {
    # GLUE as published on gluebenchmark.com. Among CoLA's files only test.tsv has a header.
    "cola": Dataset(
        "CoLA",
        _glue(3, label=1, of_test={"text": "sentence", "id": "index"}),
        _BINARY,
        ("matthews", "accuracy"),
    ),
    "sst-2": Dataset("SST-2", _glue("sentence", of_test={"id": "index"}), _BINARY),
    "mrpc": Dataset(
        "MRPC",
        _glue("#1 String", "#2 String", "Quality", of_test={"id": "index"}),
        _BINARY,
        ("accuracy", "f1"),
    ),
    "sts-b": Dataset(
        "STS-B",
        _glue("sentence1", "sentence2", "score", id="index"),
        (),
        ("pearson", "spearman"),
    ),
    # Truncated rows are left out, as in google-research/albert.
    "qqp": Dataset(
        "QQP",
        _glue("question1", "question2", "is_duplicate", id="id", left_out=("short",)),
        _BINARY,
        ("accuracy", "f1"),
    ),
    "mnli": Dataset("MNLI", _MNLI, _NLI),
    # MNLI evaluated on genres that it was not trained on; the name is google-research/albert's.
    "mismnli": Dataset(
        "MNLI",
        {
            "train": _MNLI["train"],
            "dev": _MNLI["dev_mismatched"],
            "test": _MNLI["test_mismatched"],
        },
        _NLI,
    ),
    "qnli": Dataset("QNLI", _glue("question", "sentence", id="index"), _ENTAILMENT),
    "rte": Dataset("RTE", _glue("sentence1", "sentence2", id="index"), _ENTAILMENT),
    "wnli": Dataset("WNLI", _glue("sentence1", "sentence2", id="index"), _BINARY),
    # In Chinese, as in google-research/bert; kornli is the Korean one.
    "xnli": Dataset(
        "XNLI",
        {
            "train": SplitSource(("multinli/multinli.train.zh.tsv",), "premise", "hypo", "label"),
            **_splits(
                SplitSource(
                    (), "sentence1", "sentence2", "gold_label", "pairID", ("language", "zh")
                ),
                dev="xnli.dev.tsv",
                test="xnli.test.tsv",
            ),
        },
        _NLI,
        aliases={"contradictory": "contradiction"},
    ),
    # Korean
    "nsmc": Dataset(
        "nsmc",
        _splits(
            SplitSource((), "document", None, "label", "id"),
            train="ratings_train.txt",
            test="ratings_test.txt",
        ),
        _BINARY,
    ),
    "klue-tc": Dataset(
        "klue-tc-v1.1",
        _klue("ynat", "title", None, "label"),
        _TOPICS,
        ("macro_f1", "accuracy"),
    ),
    "klue-nli": Dataset(
        "klue-nli-v1.1",
        _klue("klue-nli", "premise", "hypothesis", "gold_label"),
        ("entailment", "neutral", "contradiction"),
    ),
    # An example has three labels; KLUE's program uses the mean, not the mean rounded to a tenth.
    "klue-sts": Dataset(
        "klue-sts-v1.1",
        _klue("klue-sts", "sentence1", "sentence2", "labels.real-label"),
        (),
        ("pearson", "paraphrase_f1"),
    ),
    "klue-re": Dataset(
        "klue-re-v1.1",
        _klue("klue-re", "sentence", None, "label", ("subject_entity", "object_entity")),
        _RELATIONS,
        ("relation_micro_f1", "auprc"),
    ),
    "kornli": Dataset(
        "KorNLI",
        _splits(
            SplitSource((), "sentence1", "sentence2", "gold_label"),
            train=("snli_1.0_train.ko.tsv", "multinli.train.ko.tsv"),
            dev="xnli.dev.ko.tsv",
            test="xnli.test.ko.tsv",
        ),
        _NLI,
    ),
    "korsts": Dataset(
        "KorSTS",
        _splits(
            SplitSource((), "sentence1", "sentence2", "score"),
            train="sts-train.tsv",
            dev="sts-dev.tsv",
            test="sts-test.tsv",
        ),
        (),
        ("spearman", "pearson"),
    ),
    "paws-x": Dataset(
        "ko",
        _splits(
            SplitSource((), "sentence1", "sentence2", "label", "id", left_out=("NS",)),
            train="translated_train.tsv",
            dev="dev_2k.tsv",
            test="test_2k.tsv",
        ),
        _BINARY,
    ),
    # The classes: fragment, statement, question, command, rhetorical question, rhetorical command,
    # utterance whose meaning depends on intonation.
    "3i4k": Dataset(
        "3i4k",
        _splits(SplitSource((), 1, None, 0), train="fci_train_val.txt", test="fci_test.txt"),
        tuple("0123456"),
        ("accuracy", "macro_f1"),
    ),
    **{
        f"hate-{column}": Dataset(
            "labeled",
            _splits(
                SplitSource((), "comments", None, label),
                ("test",),
                train="train.tsv",
                dev="dev.tsv",
                test="test.no_label.tsv",
            ),
            labels,
            ("macro_f1",),
        )
        for column, label, labels in (
            ("speech", "hate", ("none", "offensive", "hate")),
            ("bias", "bias", ("none", "gender", "others")),
        )
    },
}
