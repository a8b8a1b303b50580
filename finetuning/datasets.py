"""The table of data sets: what their published files hold, and what they are judged by.

A data set is a row, not a class. A column is a name (of the header line, or of a JSON object's key;
"labels.real-label" is a key within a key) or, in files without a header, its number from 0.
"""

from typing import NamedTuple


class Source(NamedTuple):
    """The files of one split, published in one format.

    Attributes:
        files: their names in the data set's folder; .json holds a list of objects, .jsonl an object
            a line, everything else columns with tabs between them, without quoting.
        text: the column of the sentence.
        second: that of the second sentence, or None.
        label: that of the label; None where the labels are not published.
        id: that of the example's name; None: file and line are its name.
        where: (column, value): rows with another value there belong to others.
        left_out: what the benchmark itself has rows of that are left out, and counted: "short"
            (fewer columns than are needed), "NS" (a sentence that is "NS": not translated).
    """

    files: tuple
    text: str | int
    second: str | int | None = None
    label: str | int | None = None
    id: str | int | None = None
    where: tuple = ()
    left_out: tuple = ()


class Dataset(NamedTuple):
    """A row of the table.

    Attributes:
        folder: what the folder of its files is called beside those of others.
        sources: split -> `Source`.
        labels: the labels as the files spell them, in the order of the classes; empty where the
            label is a number, that is for a regression.
        metrics: keys of `finetuning.metrics.METRICS`; the first decides which checkpoint is best.
        aliases: other spellings of labels, each with the label that it means.
        multi_label: whether an example has any number of labels.
    """

    folder: str
    sources: dict
    labels: tuple
    metrics: tuple
    aliases: dict = {}
    multi_label: bool = False

    @property
    def splits(self):
        """split -> whether its labels are published."""
        return {split: source.label is not None for split, source in self.sources.items()}


# The order of the classes of GLUE and XNLI is that of google-research's programs, so that heads
# that were trained with them fit; of KLUE that of its own.
_BINARY = ("0", "1")
_NLI = ("contradiction", "entailment", "neutral")
_ENTAILMENT = ("entailment", "not_entailment")
_TOPICS = ("IT과학", "경제", "사회", "생활문화", "세계", "스포츠", "정치")


def _splits(source, unlabelled=(), **files):
    """The same columns in the file, or the files, of each split."""
    return {
        split: source._replace(
            files=(names,) if isinstance(names, str) else names,
            label=None if split in unlabelled else source.label,
        )
        for split, names in files.items()
    }


def _glue(text, second=None, label="label", id=None, left_out=()):
    """A GLUE task whose files have the same columns, but for labels and ids of the test."""
    source = Source((), text, second, label, id, left_out=left_out)
    return _splits(source, ("test",), train="train.tsv", dev="dev.tsv", test="test.tsv")


def _with_test(sources, **changes):
    """Sources whose test file has other columns."""
    return {**sources, "test": sources["test"]._replace(**changes)}


DATASETS = {
    # GLUE as gluebenchmark.com has it. CoLA's files have a header in the test alone.
    "cola": Dataset(
        "CoLA",
        _with_test(_glue(3, label=1), text="sentence", id="index"),
        _BINARY,
        ("matthews", "accuracy"),
    ),
    "sst-2": Dataset("SST-2", _with_test(_glue("sentence"), id="index"), _BINARY, ("accuracy",)),
    "mrpc": Dataset(
        "MRPC",
        _with_test(_glue("#1 String", "#2 String", "Quality"), id="index"),
        _BINARY,
        ("accuracy", "f1"),
    ),
    "sts-b": Dataset(
        "STS-B",
        _glue("sentence1", "sentence2", "score", id="index"),
        (),
        ("pearson", "spearman"),
    ),
    # Rows that are cut off are left out as in google-research/albert.
    "qqp": Dataset(
        "QQP",
        _glue("question1", "question2", "is_duplicate", id="id", left_out=("short",)),
        _BINARY,
        ("accuracy", "f1"),
    ),
    "mnli": Dataset(
        "MNLI",
        _splits(
            Source((), "sentence1", "sentence2", "gold_label", "index"),
            ("test", "test_mismatched"),
            train="train.tsv",
            dev="dev_matched.tsv",
            dev_mismatched="dev_mismatched.tsv",
            test="test_matched.tsv",
            test_mismatched="test_mismatched.tsv",
        ),
        _NLI,
        ("accuracy",),
    ),
    # MNLI measured on other genres than it was trained on, as google-research/albert calls it.
    "mismnli": Dataset(
        "MNLI",
        _splits(
            Source((), "sentence1", "sentence2", "gold_label", "index"),
            ("test",),
            train="train.tsv",
            dev="dev_mismatched.tsv",
            test="test_mismatched.tsv",
        ),
        _NLI,
        ("accuracy",),
    ),
    "qnli": Dataset("QNLI", _glue("question", "sentence", id="index"), _ENTAILMENT, ("accuracy",)),
    "rte": Dataset("RTE", _glue("sentence1", "sentence2", id="index"), _ENTAILMENT, ("accuracy",)),
    "wnli": Dataset("WNLI", _glue("sentence1", "sentence2", id="index"), _BINARY, ("accuracy",)),
    # In Chinese, as google-research/bert; Korean is kornli.
    "xnli": Dataset(
        "XNLI",
        {
            "train": Source(("multinli/multinli.train.zh.tsv",), "premise", "hypo", "label"),
            **_splits(
                Source((), "sentence1", "sentence2", "gold_label", "pairID", ("language", "zh")),
                dev="xnli.dev.tsv",
                test="xnli.test.tsv",
            ),
        },
        _NLI,
        ("accuracy",),
        {"contradictory": "contradiction"},
    ),
    # Korean
    "nsmc": Dataset(
        "nsmc",
        _splits(
            Source((), "document", None, "label", "id"),
            train="ratings_train.txt",
            test="ratings_test.txt",
        ),
        _BINARY,
        ("accuracy",),
    ),
    "klue-tc": Dataset(
        "klue-tc-v1.1",
        _splits(
            Source((), "title", None, "label", "guid"),
            train="ynat-v1.1_train.json",
            dev="ynat-v1.1_dev.json",
        ),
        _TOPICS,
        ("macro_f1", "accuracy"),
    ),
    "klue-nli": Dataset(
        "klue-nli-v1.1",
        _splits(
            Source((), "premise", "hypothesis", "gold_label", "guid"),
            train="klue-nli-v1.1_train.json",
            dev="klue-nli-v1.1_dev.json",
        ),
        ("entailment", "neutral", "contradiction"),
        ("accuracy",),
    ),
    # Of an example's three labels KLUE's program takes the mean as it is, not rounded to a tenth.
    "klue-sts": Dataset(
        "klue-sts-v1.1",
        _splits(
            Source((), "sentence1", "sentence2", "labels.real-label", "guid"),
            train="klue-sts-v1.1_train.json",
            dev="klue-sts-v1.1_dev.json",
        ),
        (),
        ("pearson", "paraphrase_f1"),
    ),
    "kornli": Dataset(
        "KorNLI",
        _splits(
            Source((), "sentence1", "sentence2", "gold_label"),
            train=("snli_1.0_train.ko.tsv", "multinli.train.ko.tsv"),
            dev="xnli.dev.ko.tsv",
            test="xnli.test.ko.tsv",
        ),
        _NLI,
        ("accuracy",),
    ),
    "korsts": Dataset(
        "KorSTS",
        _splits(
            Source((), "sentence1", "sentence2", "score"),
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
            Source((), "sentence1", "sentence2", "label", "id", left_out=("NS",)),
            train="translated_train.tsv",
            dev="dev_2k.tsv",
            test="test_2k.tsv",
        ),
        _BINARY,
        ("accuracy",),
    ),
    # Fragment, statement, question, command, rhetorical question, rhetorical command, and what
    # only its intonation would tell.
    "3i4k": Dataset(
        "3i4k",
        _splits(Source((), 1, None, 0), train="fci_train_val.txt", test="fci_test.txt"),
        tuple("0123456"),
        ("accuracy", "macro_f1"),
    ),
    **{
        f"hate-{column}": Dataset(
            "labeled",
            _splits(
                Source((), "comments", None, label),
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
