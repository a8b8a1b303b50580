"""A user's own tables: .csv as spreadsheets write it, encodings, stray columns, odd labels."""

import json
import re

import pytest

from bert_common.errors import InputError
from finetuning.classification import custom_data
from finetuning.classification.columns import LABEL_NAMES, TEXT_NAMES, Columns, guess_columns
from finetuning.classification.custom_data import custom_dataset
from finetuning.datasets import DATASETS
from finetuning.labels import label_text
from finetuning.readers import STRAY_TAB, find_file, read_split
from finetuning.tables import read_text
from tests.support.task_data import as_table
from tests.support.vocabularies import write_lines

ROWS = [
    ("배송이 빨라요", "긍정"),
    ('그는 "좋다"고 했다; 정말, 좋다', "긍정"),
    ("두 줄에\n걸친 리뷰", "부정"),
    ("고장이 났어요", "부정"),
]
# Each pair is a header of a text and a label.
HEADER_NAMES = [*((n, "label") for n in TEXT_NAMES), *(("text", n) for n in LABEL_NAMES)]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp949")


def read(folder, kind="csv", split="train", columns=None, **options):
    dataset = custom_dataset(kind, str(folder), "single_label", columns or Columns(), **options)
    examples, left_out = read_split(dataset, split, str(folder))
    return dataset, [(e.text, dataset.labels[e.label]) for e in examples], left_out


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("separator", (",", ";", "\t"))
def test_csv_in_every_encoding(tmp_path, separator, encoding):
    (tmp_path / "train.csv").write_bytes(as_table(ROWS, separator).encode(encoding))
    assert read(tmp_path)[1] == ROWS


def test_an_encoding_is_said_once_by_whatever_path(tmp_path, monkeypatch, capsys):
    (tmp_path / "리뷰.csv").write_bytes(as_table(ROWS).encode("cp949"))
    monkeypatch.chdir(tmp_path)
    for path in ("리뷰.csv", str(tmp_path / "리뷰.csv"), "./리뷰.csv"):
        read_text(path)
    assert capsys.readouterr().err == "note: 리뷰.csv is read as cp949 (Korean Windows, EUC-KR)\n"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", ("tsv", "jsonl"))
def test_other_tables_in_every_encoding(tmp_path, kind, encoding):
    rows = [(text.replace("\n", " "), label) for text, label in ROWS]
    lines = ["text\tlabel", *("\t".join(row) for row in rows)]
    if kind == "jsonl":
        lines = [json.dumps({"text": t, "label": v}, ensure_ascii=False) for t, v in rows]
    # Blank lines at the end are no example.
    (tmp_path / f"train.{kind}").write_bytes(("\n".join(lines) + "\n\n\r\n").encode(encoding))
    assert read(tmp_path, kind)[1] == rows


def test_a_file_of_excels_own(tmp_path):
    """The cells of a workbook, through its csv form."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for row in (("text", "label"), *ROWS):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "book.xlsx").active.values)
    (tmp_path / "train.csv").write_bytes(as_table(rows[1:]).encode("utf-8-sig"))
    assert read(tmp_path)[1] == ROWS


@pytest.mark.parametrize("text", ('text,label\n"가,1\n나,0\n', 'text,label\n"가"나,1\n'))
def test_quotes_that_are_not_closed(tmp_path, text):
    (tmp_path / "train.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="train.csv line 2: quotes must be closed"):
        read(tmp_path)


@pytest.mark.parametrize("kind, separator", (("tsv", "\t"), ("csv", ",")))
@pytest.mark.parametrize("row, count", (("가{s}나{s}1", 3), ("가", 1)))
def test_a_stray_column_is_named(tmp_path, kind, separator, row, count):
    """It would shift the label without a word."""
    lines = [separator.join(("text", "label")), separator.join("가1"), separator.join("나0")]
    lines.append(row.format(s=separator))
    write_lines(tmp_path / f"train.{kind}", lines)
    name = {"tsv": "tabs", "csv": "commas"}[kind]
    match = f"line 4 must have 2 columns, as the first line, separated by {name}. Received: {count}"
    with pytest.raises(InputError, match=match):
        read(tmp_path, kind)
    write_lines(tmp_path / f"train.{kind}", lines[1:])
    with pytest.raises(InputError, match=f"line 3 must have 2 columns.* Received: {count}"):
        read(tmp_path, kind, columns=Columns("0", None, "1"))


def test_a_stray_tab_of_a_published_file_is_left_out(tmp_path):
    """multinli.train.ko.tsv of KorNLI has such a line."""
    header, good = "sentence1\tsentence2\tgold_label\n", "가\t나\tneutral\n"
    (tmp_path / "snli_1.0_train.ko.tsv").write_text(header + good, encoding="utf-8")
    bad = "가\t나\t다\tneutral\n"
    (tmp_path / "multinli.train.ko.tsv").write_text(header + bad + good, encoding="utf-8")
    examples, left_out = read_split(DATASETS["kornli"], "train", str(tmp_path))
    assert len(examples) == 2 and left_out == {STRAY_TAB: 1}


def test_a_header_that_names_a_column_twice(tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\ttext\n가\t1\t나\n나\t0\t다\n", "utf-8")
    with pytest.raises(InputError, match="line 1 must name a column once. Received: 'text' twice"):
        read(tmp_path, "tsv")


@pytest.mark.parametrize("value", ("NaN", "Infinity", "null", "[1]", '{"a": 1}'))
def test_labels_that_are_none(tmp_path, value):
    lines = ['{"text": "가", "label": 1}', '{"text": "나", "label": 0}']
    lines.append(f'{{"text": "다", "label": {value}}}')
    write_lines(tmp_path / "train.jsonl", lines)
    with pytest.raises(InputError, match="train.jsonl line 3: a label must be text or a number"):
        read(tmp_path, "jsonl")


def test_whole_numbers_are_one_label_however_they_are_written(tmp_path):
    """pandas writes a column of numbers with a gap as 1.0."""
    (tmp_path / "train.jsonl").write_text(
        '{"text": "가", "label": 1.0}\n{"text": "나", "label": 0}\n'
        '{"text": "다", "label": "1.0"}\n',
        encoding="utf-8",
    )
    (tmp_path / "dev.jsonl").write_text('{"text": "라", "label": 1}\n', encoding="utf-8")
    dataset, rows, _ = read(tmp_path, "jsonl")
    assert dataset.labels == ("0", "1") and [label for _, label in rows] == ["1", "0", "1"]
    assert read(tmp_path, "jsonl", "dev")[1] == [("라", "1")]


def test_true_is_another_label_than_1():
    """Although they are equal in Python, and so the same key of a cache."""
    assert [label_text(value) for value in (1, True, 1.0, "1")] == ["1", "True", "1", "1"]


def test_messages_name_the_way_out(tmp_path):
    (tmp_path / "train.tsv").write_text("문장\t분류\n가\t1\n", encoding="utf-8")
    said = "columns text, label. .* .--text_column, --label_column and"
    with pytest.raises(InputError, match=said):
        read(tmp_path, "tsv")
    (tmp_path / "train.csv").write_text("text,label\n가,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="train.jsonl. Received: train.csv, train.tsv, whose end"):
        find_file("train.jsonl", str(tmp_path), "")
    # No --task_name takes these: run_ner's own files and published ones have one ending.
    with pytest.raises(InputError, match="conll/train.txt. Received: train.csv, train.tsv$"):
        find_file("train.txt", str(tmp_path), "conll")
    (tmp_path / "dev.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match="dev.csv. Received: dev.xlsx$"):
        find_file("dev.csv", str(tmp_path), "")


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
    assert len(read(tmp_path)[0].labels) == 50 and len(checks) == len(rows)


@pytest.mark.parametrize(
    "name, content, problem",
    (
        ("train.json", '\n{"text": "가"}', "list of objects, .*jsonl. Received: '{\"text"),
        ("train.json", "[]", "must hold an example. Received: none"),
        ("train.json", "[3]", "train.json entry 1 must be an object. Received: 3"),
        ("train.jsonl", " \n", "must hold an example. Received: none"),
        ("train.csv", "\n \n", "must hold a header. Received: none"),
        ("train.tsv", "\n\n", "must hold a header. Received: none"),
    ),
)
def test_a_file_without_columns(tmp_path, name, content, problem):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(InputError, match=problem):
        guess_columns(str(tmp_path / name), Columns(None, None, None, None))
    if name.endswith(("csv", "tsv")):
        with pytest.raises(InputError, match=problem):
            read(tmp_path, name[-3:])


# The label of an object without one.
MISSING = object()


def unlabelled(tmp_path, labels, kind="csv", task_type="single_label"):
    """Whether a test file with these labels counts as one without."""
    (tmp_path / f"train.{kind}").write_text(as_file(kind, [("가", "1"), ("나", "0")]), "utf-8")
    rows = [(text, label) for text, label in zip("다라마", labels, strict=True)]
    (tmp_path / f"test.{kind}").write_text(as_file(kind, rows), "utf-8")
    dataset = custom_dataset(kind, str(tmp_path), task_type, Columns())
    examples, _ = read_split(dataset, "test", str(tmp_path))
    return not dataset.splits["test"] and all(e.label is None for e in examples)


def as_file(kind, rows):
    if kind == "jsonl":
        rows = [{"text": t} if v is MISSING else {"text": t, "label": v} for t, v in rows]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return as_table(rows, {"tsv": "\t", "csv": ","}[kind], lineterminator="\n")


@pytest.mark.parametrize("task_type", ("single_label", "multi_label", "regression"))
@pytest.mark.parametrize("kind", ("csv", "tsv", "jsonl"))
def test_a_test_file_whose_labels_are_empty(tmp_path, kind, task_type):
    assert unlabelled(tmp_path, ("", " ", ""), kind, task_type)
    assert not unlabelled(tmp_path, ("1", "0", "1"), kind, task_type)
    if kind == "jsonl":
        assert unlabelled(tmp_path, (None, None, ""), kind, task_type)
        assert unlabelled(tmp_path, (MISSING, MISSING, MISSING), kind, task_type)
        with pytest.raises(InputError, match="line 1 must have 'label'"):
            unlabelled(tmp_path, (MISSING, "0", "1"), kind, task_type)
    if task_type == "multi_label":  # no label is an answer
        assert not unlabelled(tmp_path, ("", "0", "1"), kind, task_type)
        return
    with pytest.raises(InputError, match=r"line \d: the label must not be empty: .*leave all lab"):
        unlabelled(tmp_path, ("", "0", "1"), kind, task_type)


def test_a_wrong_label_names_its_column(tmp_path):
    (tmp_path / "train.csv").write_text(as_table([("가", "1"), ("나", "0")]), "utf-8")
    (tmp_path / "dev.csv").write_text(as_table([("가", "별점")]), "utf-8")
    said = r"line 2, column 'label' \(--label_column names another\): the label must be one of 0, 1"
    with pytest.raises(InputError, match=said):
        read(tmp_path, split="dev")


def test_a_message_lists_some_of_many_labels(tmp_path):
    rows = [(f"글 {i}", f"c{i:02}") for i in range(25)]
    (tmp_path / "train.csv").write_text(as_table(rows), "utf-8")
    (tmp_path / "dev.csv").write_text(as_table([("가", "별점")]), "utf-8")
    with pytest.raises(InputError, match="one of c00, .*c19 and 5 more. Received: '별점'"):
        read(tmp_path, split="dev")


@pytest.mark.parametrize("words", HEADER_NAMES)
def test_every_name_that_is_guessed_is_known_in_a_header(tmp_path, words):
    write_lines(tmp_path / "train.csv", map(",".join, [words, ("가", "x"), ("나", "y")]))
    with pytest.raises(InputError, match="line 1 must be an example"):
        read(tmp_path, columns=Columns("0", None, "1"))


@pytest.mark.parametrize(
    "lines, rows",
    (
        # A text with semicolons, or commas, and no header.
        (("좋아; 정말; 최고,1", "싫어; 아주; 별로,0"), ("좋아; 정말; 최고", "싫어; 아주; 별로")),
        (("좋아; 정말; 최고,1", "싫어,0"), ("좋아; 정말; 최고", "싫어")),
        (("좋아, 정말, 최고;1", "싫어, 아주, 별로;0"), ("좋아, 정말, 최고", "싫어, 아주, 별로")),
        (("좋아, 정말;1", "싫어;0"), ("좋아, 정말", "싫어")),
        (('"좋아; 정말",1', "싫어;,0"), ("좋아; 정말", "싫어;")),
        (('"좋아, 정말\n최고";1', '"싫어, 아주";0'), ("좋아, 정말\n최고", "싫어, 아주")),
        (("좋아, 정말\t1", "싫어, 아주\t0"), ("좋아, 정말", "싫어, 아주")),
    ),
)
def test_the_separator_of_a_file_without_a_header(tmp_path, lines, rows):
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n", "utf-8")
    found = read(tmp_path, columns=Columns("0", None, "1"))[1]
    assert found == [(rows[0], "1"), (rows[1], "0")]


def test_the_separator_is_named(tmp_path):
    for text, name in (("text;label\n가;1\n나;0;1\n", "semicolons"), ("sep=|\na|b\nc\n", "'|'")):
        (tmp_path / "train.csv").write_text(text, "utf-8")
        match = re.escape(f"2 columns, as the first line, separated by {name}. Received: ")
        with pytest.raises(InputError, match=match):
            read(tmp_path, columns=Columns() if "text" in text else Columns("a", None, "b"))
