"""A user's own tables: the forms in which programs write them, columns, splits, labels."""

import csv
import json
import unicodedata

import pytest

from bert_common.errors import InputError
from finetuning.classification import custom_data
from finetuning.classification.columns import USUAL_NAMES, Columns, find_columns
from finetuning.classification.custom_data import DEFAULT_METRICS
from finetuning.labels import label_text
from finetuning.readers import read_split
from finetuning.tables import read_table
from tests.support.own_tables import dataset_of, examples_of, read
from tests.support.refusals import refused
from tests.support.task_data import as_table, write_table

ROWS = [
    ("배송이 빨라요", "긍정"),
    ('그는 "별로"라고 했다; 정말, 별로', "부정"),
    ("두 줄에\n걸친\t리뷰", "부정"),
    ("고장이 났어요", "부정"),
]
PLAIN = [("가", "1"), ("나", "0")]
LONG = [("가, 나 " * 50_000 + "다", "1"), ("나", "0")]
NUMBERED = Columns("0", None, "1")
JAMO = {name: unicodedata.normalize("NFD", name) for name in ("문장", "라벨", "정보", "긍정")}


def objects(*entries):
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def tabs(*rows):
    return "".join("\t".join(row) + "\n" for row in (("text", "label"), *rows))


# The kind and content of a training file, its columns, and its texts and labels.
ACCEPTED = {
    "commas": ("csv", as_table(ROWS), Columns(), ROWS),
    "semicolons": ("csv", as_table(ROWS, ";"), Columns(), ROWS),
    "tabs in a .csv": ("csv", as_table(ROWS, "\t"), Columns(), ROWS),
    # pandas' to_csv(sep="\t"), Excel's "Text (tab delimited)"
    "a quoted .tsv": ("tsv", as_table(ROWS, "\t"), Columns(), ROWS),
    "all quoted": ("tsv", as_table(ROWS, "\t", quoting=csv.QUOTE_ALL), Columns(), ROWS),
    "quoted cells of one line": ("tsv", as_table(ROWS[:2], "\t"), Columns(), ROWS[:2]),
    # Quotes of a .tsv that is not quoted are text.
    **{
        f"quotes {number}": ("tsv", tabs(*rows), Columns(), rows)
        for number, rows in enumerate((
            [('"좋다"', "긍정"), ("나쁘다", "부정")],
            [('"좋다" 아주', "긍정"), ("나쁘다", "부정")],
            # A quotation over two rows: no row may be swallowed.
            [('"좋다', "긍정"), ("나쁘다", "부정"), ('그렇다"', "긍정")],
            [('"그는', "긍정"), ('""뭐""라고"', "부정")],
        ))
    },
    # Texts with separators, and no header.
    **{
        f"separator {number}": ("csv", content, NUMBERED, list(zip(texts, "10", strict=True)))
        for number, (content, *texts) in enumerate((
            ("좋아; 정말; 최고,1\n싫어; 아주; 별로,0\n", "좋아; 정말; 최고", "싫어; 아주; 별로"),
            ("좋아; 정말; 최고,1\n싫어,0\n", "좋아; 정말; 최고", "싫어"),
            ("좋아, 정말, 최고;1\n싫어, 아주, 별로;0\n", "좋아, 정말, 최고", "싫어, 아주, 별로"),
            ("좋아, 정말;1\n싫어;0\n", "좋아, 정말", "싫어"),
            ('"좋아; 정말",1\n싫어;,0\n', "좋아; 정말", "싫어;"),
            ('"좋아, 정말\n최고";1\n"싫어, 아주";0\n', "좋아, 정말\n최고", "싫어, 아주"),
            ("좋아, 정말\t1\n싫어, 아주\t0\n", "좋아, 정말", "싫어, 아주"),
        ))
    },
    "a line that names the separator": (
        "csv", "sep=|\r\ntext|label\r\n가, 나|1\r\n나|0\r\n", Columns(),
        [("가, 나", "1"), ("나", "0")],
    ),
    # Python's csv module stops at 131,072 characters unless it is told otherwise.
    "a long text in quotes": ("csv", as_table(LONG), Columns(), LONG),
    "spaces around names": ("csv", "text, label\n가, 1\n나, 0\n", Columns(), PLAIN),
    "blank lines in a .csv": ("csv", "text,label\n \r\n\r\n가,1\n\"\"\n나,0\n\n", Columns(), PLAIN),
    "blank lines in a .tsv": ("tsv", "text\tlabel\n  \n가\t1\n\n나\t0\n\r\n", Columns(), PLAIN),
    "blank lines of JSON": (
        "jsonl", '{"text": "가", "label": 1}\n \r\n{"text": "나", "label": 0}\n\n',
        Columns(), PLAIN,
    ),
    # With dots as columns of nested objects that pandas flattened.
    **{
        f"keys {number}": ("jsonl", objects(*entries), Columns("a.b", None, "y"), PLAIN)
        for number, entries in enumerate((
            [{"a": {"b": "가"}, "y": 1}, {"a": {"b": "나"}, "y": 0}],
            [{"a.b": "가", "y": 1}, {"a.b": "나", "y": 0}],
        ))
    },
    # Names of macOS's folders are in jamo; names and labels are compared as syllables.
    "names in jamo": (
        "csv", f"{JAMO['문장']},{JAMO['라벨']}\n가,긍정\n나,부정\n다,{JAMO['긍정']}\n",
        Columns("문장", None, "라벨"), [("가", "긍정"), ("나", "부정"), ("다", "긍정")],
    ),
    "keys in jamo": (
        "jsonl", objects(*({JAMO["정보"]: {JAMO["정보"]: t}, "label": v} for t, v in PLAIN)),
        Columns("정보.정보", None, "label"), PLAIN,
    ),
    # pandas writes a column of numbers with a gap as 1.0.
    "whole numbers": (
        "jsonl", objects({"text": "가", "label": 1.0}, {"text": "나", "label": "0.0"}),
        Columns(), PLAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind, content, columns, rows", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_read(tmp_path, kind, content, columns, rows):
    assert read(tmp_path, kind, content, columns=columns) == rows


# === Columns ===


@pytest.mark.parametrize("name", USUAL_NAMES["text"])
@pytest.mark.parametrize("label", ("label", "라벨", " Label"))
def test_columns_with_usual_names_are_found(tmp_path, capsys, name, label):
    path = tmp_path / "a.csv"
    path.write_text(f"other,{name},{label}\n1,가,2\n", "utf-8")
    label = label.strip()
    found = find_columns(str(path), Columns(None, None, None))
    assert (found.text, found.label) == (name, label)
    said = f"text {name!r}, label {label!r} (--text_column, --label_column name others)"
    assert capsys.readouterr().out == f"columns of {path}: {said}\n"
    assert find_columns(str(path), found) == found and capsys.readouterr().out == ""
    other = find_columns(str(path), Columns("none", None, "none"), needs_label=False)
    assert (other.text, other.label) == (name, "none")


def test_tables_with_a_header(tmp_path):
    rows = [("b", "좋다", "x"), ("a", "나쁘다", "y"), ("b", "so so", "z")]
    write_table(tmp_path / "train.tsv", ["label", "text", "other"], rows)
    write_table(tmp_path / "dev.tsv", ["text", "label"], [("글", "b")])
    write_table(tmp_path / "test.tsv", ["other", "text"], [("t1", "글")])
    made = dataset_of(tmp_path, "tsv")
    assert made.labels == ("a", "b") and made.metrics == DEFAULT_METRICS["single_label"]
    assert made.splits == {"train": True, "dev": True, "test": False}
    assert examples_of(made) == [(text, None, label) for label, text, _ in rows]
    assert examples_of(made, "test") == [("글", None, None)]
    (example,), _ = read_split(made, "dev", "")
    assert example.id == f"{tmp_path}/dev.tsv line 2"
    # A pair, with names.
    (tmp_path / "dev.tsv").unlink()
    made = dataset_of(tmp_path, "tsv", columns=Columns(second="other", id="other"))
    found, _ = read_split(made, "train", "")
    assert [(e.id, e.second) for e in found] == [(other, other) for *_, other in rows]
    (example,), _ = read_split(made, "test", "")
    assert (example.id, example.second, example.label) == ("t1", "t1", None)


def test_tables_without_a_header(tmp_path):
    write_table(tmp_path / "train.tsv", (), [("10", "A", "B"), ("9", "C", "D"), ("10", "E", "F")])
    write_table(tmp_path / "test.tsv", (), [("9", "G", "H")])
    made = dataset_of(tmp_path, "tsv", columns=Columns("1", "2", "0"))
    assert made.labels == ("9", "10")  # numbers in their order
    assert made.splits == {"train": True, "test": True}
    assert examples_of(made) == [("A", "B", "10"), ("C", "D", "9"), ("E", "F", "10")]
    # A test whose rows end before the label.
    write_table(tmp_path / "train.tsv", (), [("A", "x"), ("B", "y")])
    write_table(tmp_path / "test.tsv", (), [("G",)])
    made = dataset_of(tmp_path, "tsv", columns=NUMBERED)
    assert made.splits == {"train": True, "test": False}
    assert examples_of(made, "test") == [("G", None, None)]


def test_an_id_that_is_null_is_none(tmp_path):
    """As tables in which only other rows have an id are written to JSON and Parquet."""
    entries = ({"text": "글", "label": "a", "id": None}, {"text": "글", "label": "b", "id": 0})
    (tmp_path / "train.jsonl").write_text(objects(*entries))
    examples, _ = read_split(dataset_of(tmp_path, "jsonl", columns=Columns(id="id")), "train", "")
    assert [example.id for example in examples] == [f"{tmp_path}/train.jsonl line 1", "0"]


# === Tables to predict ===

# As other programs read them, for the table of a file to predict with all its columns.
ENTRY = {"text": {"body": "글", "by": None}, "tags": ["a", True], "stars": 4, "none": None}
CELLS = ['{"body": "글", "by": null}', '["a", true]', 4, ""]


@pytest.mark.parametrize(
    "name, content, expected",
    (
        # So pandas writes an empty text of a table with one column: no prediction may be missing.
        ("new.csv", 'text\n가\n""\n\n나\n', (["text"], [["가"], [""], ["나"]])),
        ("new.jsonl", objects(ENTRY), ([*ENTRY], [CELLS])),
        ("new.json", json.dumps([ENTRY]), ([*ENTRY], [CELLS])),
    ),
)
def test_every_row_and_cell_is_kept(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_table(str(tmp_path / name)) == expected


# === Labels ===


def test_true_is_another_label_than_1():
    """Although they are equal in Python, and so the same key of a cache."""
    assert [label_text(value) for value in (1, True, 1.0, "1")] == ["1", "True", "1", "1"]


def test_the_order_of_labels_of_one_number(tmp_path):
    """It is the same in every process, whatever the order of a set."""
    labels = tuple("0" * count + "1" for count in range(6, -1, -1))
    write_table(tmp_path / "train.tsv", (), [(label, "A") for label in ("2", *labels)])
    made = dataset_of(tmp_path, "tsv", columns=Columns("1", None, "0"))
    assert made.labels == (*labels, "2")


def test_labels_are_checked_row_by_row(tmp_path, monkeypatch):
    """Not all labels found so far in every row: thousands of them took minutes."""
    checks = []

    class Label(str):
        def __contains__(self, part):
            checks.append(part)
            return super().__contains__(part)

    found = custom_data.label_texts
    monkeypatch.setattr(custom_data, "label_texts", lambda *a: [Label(x) for x in found(*a)])
    rows = [(f"글 {i}", f"l{i % 50}") for i in range(200)]
    (tmp_path / "train.csv").write_text(as_table(rows), "utf-8")
    assert len(dataset_of(tmp_path).labels) == 50 and len(checks) == len(rows)


@pytest.mark.parametrize("none", ([], None, "", "tsv"))
def test_several_labels(tmp_path, none):
    """As text with commas, as a list; none at all is an answer too."""
    write_table(tmp_path / "train.tsv", ["text", "label"],
                [("A", "joy, fear"), ("B", ""), ("C", "anger")])  # fmt: skip
    lists = zip("ABC", [["joy", "fear"], none, ["anger"]], strict=True)
    (tmp_path / "train.jsonl").write_text(objects(*({"text": t, "label": x} for t, x in lists)))
    made = dataset_of(tmp_path, "tsv" if none == "tsv" else "jsonl", "multi_label")
    assert made.labels == ("anger", "fear", "joy") and made.multi_label
    assert made.metrics == DEFAULT_METRICS["multi_label"]
    assert [label for *_, label in examples_of(made)] == [["fear", "joy"], [], ["anger"]]
    # Brackets and quotes may be in labels.
    rows = [("A", "[x],[y z]"), ("B", "'x'"), ("C", "[x]")]
    write_table(tmp_path / "train.tsv", ["text", "label"], rows)
    assert dataset_of(tmp_path, "tsv", "multi_label").labels == ("'x'", "[x]", "[y z]")


def test_regression(tmp_path):
    write_table(tmp_path / "train.tsv", ["text", "label"], [("A", "-0.5"), ("B", "3e1")])
    made = dataset_of(tmp_path, "tsv", "regression")
    assert made.labels == () and made.metrics == DEFAULT_METRICS["regression"]
    assert [label for *_, label in examples_of(made)] == [-0.5, 30.0]


def test_labels_that_are_given(tmp_path):
    """Their order is that of the classes; then no training file is needed."""
    write_table(tmp_path / "dev.tsv", ["text", "label"], [("A", "yes")])
    given = {"labels": ["yes", "no", "never"], "metrics": ["matthews", "accuracy"]}
    made = dataset_of(tmp_path, "tsv", **given)
    assert made.labels == ("yes", "no", "never") and made.metrics == ("matthews", "accuracy")
    assert made.splits == {"dev": True} and examples_of(made, "dev") == [("A", None, "yes")]
    with refused("where neither training file nor model has them"):
        dataset_of(tmp_path, "tsv")
    # As the file may write them: a model that was trained on a file with 1.0 recorded such labels.
    content = "text,label\n가,1.0\n나,0\n다,0.0\n"
    rows = [("가", "1"), ("나", "0"), ("다", "0")]
    assert read(tmp_path, content=content, labels=["0.0", "1.0"]) == rows


MISSING = object()  # the label of an object without one


@pytest.mark.parametrize("task_type", DEFAULT_METRICS)
@pytest.mark.parametrize("kind", ("csv", "jsonl"))
def test_a_test_file_whose_labels_are_empty(tmp_path, kind, task_type):
    """It counts as one without labels."""

    def write(split, labels):
        rows = list(zip("가나다", labels, strict=False))
        entries = [{"text": t} | ({} if v is MISSING else {"label": v}) for t, v in rows]
        content = as_table(rows) if kind == "csv" else objects(*entries)
        (tmp_path / f"{split}.{kind}").write_text(content, "utf-8")

    def unlabelled(*labels):
        write("test", labels)
        dataset = dataset_of(tmp_path, kind, task_type)
        labels = [label for *_, label in examples_of(dataset, "test")]
        return not dataset.splits["test"] and labels == [None] * 3

    write("train", "10")
    assert unlabelled("", " ", "")
    assert not unlabelled("1", "0", "1")
    if kind == "jsonl":
        assert unlabelled(None, None, "")
        assert unlabelled(MISSING, MISSING, MISSING)
        with refused("line 1 must have 'label'"):
            unlabelled(MISSING, "0", "1")
    if task_type == "multi_label":  # no label is an answer
        assert not unlabelled("", "0", "1")
        return
    with pytest.raises(InputError, match=r"line \d: the label must not be empty: .*leave all lab"):
        unlabelled("", "0", "1")
