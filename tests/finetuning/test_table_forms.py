"""A user's own tables, as programs write them: quotes, blank rows, odd headers, spellings."""

import csv
import json
import unicodedata

import pytest

from bert_common.errors import InputError
from finetuning.classification.columns import Columns, guess_columns
from finetuning.classification.custom_data import custom_dataset
from finetuning.datasets import SplitSource
from finetuning.labels import read_label
from finetuning.readers import read_rows, read_split
from finetuning.tables import read_table
from tests.support.task_data import as_table

ROWS = [
    ("배송이 빨라요", "긍정"),
    ('그는 "좋다"고 했다; 정말, 좋다', "긍정"),
    ("두 줄에\n걸친\t리뷰", "부정"),
    ("고장이 났어요", "부정"),
]


def read(folder, kind, split="train", columns=None, task_type="single_label", **options):
    dataset = custom_dataset(kind, str(folder), task_type, columns or Columns(), **options)
    examples, _ = read_split(dataset, split, str(folder))
    return dataset, [
        (e.text, None if e.label is None else dataset.labels[e.label]) for e in examples
    ]


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8", newline="")


@pytest.mark.parametrize("quoting", (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
@pytest.mark.parametrize("count", (len(ROWS), 2))  # with tabs and line breaks in quotes, without
def test_a_quoted_tsv(tmp_path, quoting, count):
    """pandas' to_csv(sep="\\t"), Excel's "Text (tab delimited)"."""
    rows = ROWS[:count]
    rows.append(ROWS[-1])
    write(tmp_path, "train.tsv", as_table(rows, delimiter="\t", quoting=quoting))
    assert read(tmp_path, "tsv")[1] == rows


@pytest.mark.parametrize(
    "rows",
    (
        [('"좋다"', "긍정"), ("나쁘다", "부정")],
        [('"좋다" 아주', "긍정"), ("나쁘다", "부정")],
        # A quotation over two rows: no row may be swallowed.
        [('"좋다', "긍정"), ("나쁘다", "부정"), ('그렇다"', "긍정")],
        [('"그는', "긍정"), ('""뭐""라고"', "부정")],
    ),
)
def test_quotes_of_an_unquoted_tsv_are_text(tmp_path, rows):
    lines = ["\t".join(row) for row in (("text", "label"), *rows)]
    write(tmp_path, "train.tsv", "\n".join(lines) + "\n")
    assert read(tmp_path, "tsv")[1] == rows


def test_a_line_that_names_the_separator(tmp_path):
    write(tmp_path, "train.csv", "sep=;\r\ntext;label\r\n가;1\r\n나;0\r\n다;1;\r\n")
    with pytest.raises(InputError, match="train.csv line 5 must have 2 columns"):
        read(tmp_path, "csv")
    write(tmp_path, "train.csv", "sep=|\r\ntext|label\r\n가, 나|1\r\n나|0\r\n")
    assert read(tmp_path, "csv")[1] == [("가, 나", "1"), ("나", "0")]


def test_a_long_text_in_quotes(tmp_path):
    """Python's csv module stops at 131,072 characters unless it is told otherwise."""
    rows = [("가, 나 " * 50_000, "1"), ("나", "0")]
    write(tmp_path, "train.csv", as_table(rows))
    assert read(tmp_path, "csv")[1] == [(rows[0][0].strip(), "1"), rows[1]]


def test_spaces_around_names_of_columns(tmp_path):
    write(tmp_path, "train.csv", "text, label\n가, 1\n나, 0\n")
    assert read(tmp_path, "csv")[1] == [("가", "1"), ("나", "0")]
    write(tmp_path, "train.csv", "text,label,text \n가,1,나\n나,0,다\n")
    with pytest.raises(InputError, match="line 1 must name a column once"):
        read(tmp_path, "csv")


@pytest.mark.parametrize("kind", ("csv", "jsonl"))
def test_names_and_labels_in_jamo(tmp_path, kind):
    """Names of macOS's folders are in jamo; names and labels are compared as syllables."""
    apart = unicodedata.normalize("NFD", "문장,라벨")
    rows = [
        ("빨라요", "긍정"),
        ("느려요", "부정"),
        ("좋아요", unicodedata.normalize("NFD", "긍정")),
    ]
    objects = [json.dumps(dict(zip(apart.split(","), row, strict=True))) for row in rows]
    tables = [apart, *map(",".join, rows)]
    write(tmp_path, f"train.{kind}", "\n".join(tables if kind == "csv" else objects))
    columns = Columns("문장", None, "라벨")
    dataset, examples = read(tmp_path, kind, columns=columns)
    assert dataset.labels == ("긍정", "부정")
    assert [label for _, label in examples] == ["긍정", "부정", "긍정"]
    path = str(tmp_path / f"train.{kind}")
    assert guess_columns(path, Columns(None, None, None)) == columns


def test_keys_in_jamo_inside_objects_and_twice(tmp_path):
    apart = unicodedata.normalize("NFD", "정보")
    rows = [{apart: {apart: text}, "label": label} for text, label in (("가", "1"), ("나", "0"))]
    write(tmp_path, "train.jsonl", "\n".join(map(json.dumps, rows)))
    columns = Columns("정보.정보", None, "label")
    assert read(tmp_path, "jsonl", columns=columns)[1] == [("가", "1"), ("나", "0")]
    write(tmp_path, "train.jsonl", json.dumps({apart: "가", "정보": "나", "label": "1"}))
    with pytest.raises(InputError, match="line 1 must name a key once"):
        read(tmp_path, "jsonl", columns=Columns("정보", None, "label"))


@pytest.mark.parametrize("blank", ("\n", "  \n", " \r\n\r\n"))
@pytest.mark.parametrize("kind", ("csv", "tsv", "jsonl"))
def test_blank_lines_are_no_examples(tmp_path, kind, blank):
    if kind == "jsonl":
        lines = [json.dumps({"text": t, "label": v}) + "\n" for t, v in (("가", "1"), ("나", "0"))]
    else:
        separator = {"csv": ",", "tsv": "\t"}[kind]
        lines = [separator.join(row) + "\n" for row in (("text", "label"), "가1", "나0")]
    write(tmp_path, f"train.{kind}", blank.join([*lines, ""]))
    assert read(tmp_path, kind)[1] == [("가", "1"), ("나", "0")]


def test_an_empty_cell_in_quotes_is_a_row(tmp_path):
    """So pandas writes an empty text of a table with one column: no prediction may be missing."""
    (tmp_path / "new.csv").write_text('text\n가\n""\n\n나\n', encoding="utf-8")
    assert read_table(str(tmp_path / "new.csv")) == (["text"], [["가"], [""], ["나"]])
    write(tmp_path, "train.csv", 'text,label\n가,1\n""\n나,0\n')  # a blank line by csv.writer
    assert read(tmp_path, "csv")[1] == [("가", "1"), ("나", "0")]


def test_blank_lines_count_in_messages(tmp_path):
    write(tmp_path, "train.tsv", "text\tlabel\n가\t1\n\n나\t0\n다\n")
    with pytest.raises(InputError, match="train.tsv line 5 must have 2 columns"):
        read(tmp_path, "tsv")
    write(tmp_path, "train.jsonl", '{"text": "가", "label": 1}\n\n{"text": "나"}\n')
    with pytest.raises(InputError, match="train.jsonl line 3 must have 'label'"):
        read(tmp_path, "jsonl")


@pytest.mark.parametrize("kind, separator", (("csv", ","), ("tsv", "\t")))
@pytest.mark.parametrize(
    "header, labels",
    (
        # The names that a published data set has.
        (("hate", "bias", "comments"), ("none", "hate")),
        # Any name, where all labels are numbers.
        (("만족도", "주문", "리뷰내용"), ("1", "5")),
        (("overall", "n", "reviewText"), ("1.0", "5.0")),
        (("label", "id", "text"), ("0", "1")),
    ),
)
def test_headers_of_numbered_columns(tmp_path, kind, separator, header, labels):
    rows = [(labels[0], "x", "가"), (labels[1], "x", "나"), (labels[0], "x", "다")]
    columns = Columns("2", None, "0")
    text = "".join(separator.join(row) + "\n" for row in rows)
    write(tmp_path, f"train.{kind}", separator.join(header) + "\n" + text)
    said = f"line 1 must be an example, .* --text_column={header[2]}. Received: {header[2]}, "
    with pytest.raises(InputError, match=said):
        read(tmp_path, kind, columns=columns)
    write(tmp_path, f"train.{kind}", text)
    assert len(read(tmp_path, kind, columns=columns)[1]) == 3


def test_a_header_of_a_test_file_without_labels(tmp_path):
    write(tmp_path, "train.tsv", "가\t0\n나\t1\n다\t1\n")
    write(tmp_path, "test.tsv", "document\n라\n")
    columns = Columns("0", None, "1")
    with pytest.raises(InputError, match="test.tsv line 1 must be an example"):
        read(tmp_path, "tsv", "test", columns)
    write(tmp_path, "test.tsv", "라\n마\n")
    assert read(tmp_path, "tsv", "test", columns)[1] == [("라", None), ("마", None)]


@pytest.mark.parametrize(
    "rows",
    (
        [("가", "긍정"), ("나", "0"), ("다", "긍정"), ("라", "1")],
        [("가", "기타"), ("나", "1")],
        [("리뷰", "1"), ("나", "2"), ("다", "1")],
    ),
)
def test_first_examples_that_are_no_headers(tmp_path, rows):
    write(tmp_path, "train.tsv", "".join("\t".join(row) + "\n" for row in rows))
    assert read(tmp_path, "tsv", columns=Columns("0", None, "1"))[1] == rows


def test_labels_of_the_flag_as_the_file_may_write_them(tmp_path):
    """A model that was trained on a file with 1.0 recorded such labels."""
    write(tmp_path, "train.csv", "text,label\n가,1.0\n나,0\n다,0.0\n")
    dataset, rows = read(tmp_path, "csv", labels=["0.0", "1.0"])
    assert dataset.labels == ("0", "1") and [label for _, label in rows] == ["1", "0", "0"]
    with pytest.raises(InputError, match="--labels must be at least two different labels"):
        read(tmp_path, "csv", labels=["1.0", "1"])


def test_a_truth_value_is_no_score(tmp_path):
    write(tmp_path, "train.jsonl", '{"text": "가", "label": true}\n')
    dataset = custom_dataset("jsonl", str(tmp_path), "regression", Columns())
    said = "line 1, column .label.* must be a number. Received: True"
    with pytest.raises(InputError, match=said):
        read_split(dataset, "train", str(tmp_path))
    with pytest.raises(InputError):
        read_label(dataset, False, "line 1")


@pytest.mark.parametrize("encoding", ("utf-8", "utf-8-sig", "utf-16", "cp949"))
def test_a_json_file_in_every_encoding(tmp_path, encoding):
    entries = [{"text": "배송이 빨라요", "label": "긍정"}, {"text": "별로예요", "label": "부정"}]
    path = tmp_path / "train.json"
    path.write_bytes(json.dumps(entries, ensure_ascii=False, indent=1).encode(encoding))
    rows = read_rows(str(path), SplitSource((), "text", None, "label"))
    assert [field("text") for _, field in rows] == [entry["text"] for entry in entries]


@pytest.mark.parametrize("kind", ("jsonl", "json"))
def test_lists_and_objects_become_cells_of_json(tmp_path, kind):
    """As other programs read them, for the table of a file to predict with all its columns."""
    entry = {"text": {"body": "글", "by": None}, "tags": ["a", True], "stars": 4, "none": None}
    text = json.dumps(entry if kind == "jsonl" else [entry])
    (tmp_path / f"new.{kind}").write_text(text + "\n")
    names, [row] = read_table(str(tmp_path / f"new.{kind}"))
    assert names == [*entry]
    assert row == ['{"body": "글", "by": null}', '["a", true]', 4, ""]


def test_an_id_that_is_null_is_none(tmp_path):
    """As tables in which only other rows have an id are written to JSON and Parquet."""
    rows = [{"text": "글", "label": "a", "id": None}, {"text": "글", "label": "b", "id": 0}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = custom_dataset("jsonl", str(tmp_path), "single_label", Columns(id="id"))
    examples, _ = read_split(dataset, "train", str(tmp_path))
    assert [example.id for example in examples] == [f"{tmp_path}/train.jsonl line 1", "0"]
