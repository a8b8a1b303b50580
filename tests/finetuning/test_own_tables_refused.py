"""A user's own tables: one line for what does not fit, with file and line."""

import json
import unicodedata

import pytest

from bert_common.errors import InputError
from finetuning.classification.columns import Columns, find_columns
from finetuning.readers import find_file
from tests.support.own_tables import read
from tests.support.refusals import refused

JAMO = unicodedata.normalize("NFD", "정보")
LINES = "text\tlabel\nA\tx\nB\ty\n"
NUMBERED = {"columns": Columns("0", None, "1")}
SCORES, SEVERAL = {"task_type": "regression"}, {"task_type": "multi_label"}


def line(**entry):
    return json.dumps(entry, ensure_ascii=False) + "\n"


# The kind and content of a training file, what else is given, and words of the message.
REFUSED = (
    ("tsv", "text\tlabel\n", {}, ("train.tsv", "two different labels", "none")),
    ("tsv", "text\tlabel\nA\tx\nB\tx\n", {}, ("train.tsv", "two different labels", "x")),
    ("tsv", "text\tlabel\nA\tx,y\nB\tx\n", {}, ("train.tsv line 2", "comma", "'x,y'")),
    ("tsv", "text\tlabel\nA\tx\nB\t\n", {}, ("train.tsv line 3", "must not be empty", "''")),
    ("tsv", "words\tlabel\nA\tx\n", {}, ("train.tsv line 1", "text", "words, label")),
    ("tsv", "문장\t분류\n가\t1\n", {}, ("columns text, label", "(--text_column, --label_")),
    ("tsv", LINES, {"columns": Columns(second="other")}, ("train.tsv line 1", "other")),
    ("tsv", LINES, {"labels": ["x", "z"]}, ("train.tsv line 3", "x, z", "'y'")),
    ("tsv", LINES, {"labels": ["x"]}, ("--labels", "two different", "x")),
    ("tsv", LINES, {"labels": ["1.0", "1"]}, ("--labels", "two different", "1,1")),
    ("tsv", LINES, {"labels": ["x", ""]}, ("--labels", "two different", "x,")),
    ("tsv", LINES, {"metrics": ["pearson"]}, ("--task_type=single_label", "pearson")),
    ("tsv", LINES, {"columns": Columns("0")}, ("all be names, or all be numbers", "0, label")),
    ("tsv", LINES, SCORES, ("train.tsv line 2", "a number", "'x'")),
    ("tsv", LINES, {**SEVERAL, "metrics": ["matthews"]}, ("micro_f1", "matthews")),
    ("tsv", LINES + "C\tz\n", {"metrics": ["f1"]}, ("two labels", "3 labels")),
    ("tsv", LINES + "C\t['x']\n", SEVERAL, ("line 4", "commas alone", "['x']")),
    ("tsv", LINES + "C\t[]\n", SEVERAL, ("line 4", "commas alone", "[]")),
    ("tsv", LINES + "C\t[1, 2]\n", SEVERAL, ("line 4", "commas alone", "[1, 2]")),
    # A stray column would shift the label without a word.
    ("tsv", f"{LINES}C\n", {}, ("line 4 must have 2 columns, as the first line", "tabs. Re", "1")),
    ("tsv", f"{LINES}C\tD\tx\n", {}, ("line 4 must have 2 columns", "tabs. Received: 3")),
    ("tsv", "A\tx\n\nB\ty\nC\n", NUMBERED, ("train.tsv line 4 must have 2 columns", "Received: 1")),
    ("csv", "text,label\nA,x\nB,y,z\n", {}, ("line 3 must have 2 columns", "commas. Received: 3")),
    ("csv", "text;label\n가;1\n나;0;1\n", {}, ("line 3", "separated by semicolons. Received: 3")),
    ("csv", "sep=|\r\ntext|label\r\n가|1\r\n다|1|\r\n", {}, ("line 4", "separated by '|'. Re")),
    ("csv", 'text,label\n"가,1\n나,0\n', {}, ("train.csv line 2: quotes must be closed",)),
    ("csv", "text,label,text \n가,1,나\n", {}, ("line 1 must name a column once", "'text' twice")),
    ("csv", "\n \n", {}, ("must hold a header. Received: none",)),
    ("jsonl", "{", {}, ("train.jsonl line 1", "JSON")),
    ("jsonl", line(text="A"), {}, ("line 1 must have 'label'", "text")),
    ("jsonl", line(text="A", label=1) + "\n" + line(text="B"), {}, ("line 3 must have 'label'",)),
    ("jsonl", line(text="A", label=None), {}, ("line 1: a label must be text or a number", "None")),
    ("jsonl", line(text="A", label=float("nan")), {}, ("line 1: a label must be text or a num",)),
    ("jsonl", line(text="A", label=["x"]), {}, ("line 1: a label must be text or a", "['x']")),
    ("jsonl", line(text="A", label=[["x"]]), SEVERAL, ("line 1", "['x']")),
    ("jsonl", line(text="A", label=["x,y"]), SEVERAL, ("line 1", "comma", "'x,y'")),
    ("jsonl", line(text="A", label=None), SCORES, ("line 1", "not be empty", "None")),
    ("jsonl", line(text="A", label=True), SCORES, ("line 1, column 'label'", "a number", "True")),
    ("jsonl", line(text=3, label=1), SCORES, ("line 1", "a string", "3")),
    ("jsonl", line(**{"정보": "나", JAMO: "가"}), {}, ("line 1 must name a key once",)),
)  # fmt: skip


@pytest.mark.parametrize("kind, content, given, words", REFUSED)
def test_one_line(tmp_path, kind, content, given, words):
    with refused(*words):
        read(tmp_path, kind, content, **given)


def test_a_label_of_dev_that_training_does_not_have(tmp_path):
    """The message names the column, and some of many labels."""
    lines = [line(text="A", label=f"c{i:02}") for i in range(25)]
    (tmp_path / "train.jsonl").write_text("".join(lines))
    known = "line 2, column 'label' (--label_column names another): the label must be one of c00, "
    for label, words in (("z", (known, ", c19 and 5 more. Received: 'z'")), (None, ("None",))):
        with refused("dev.jsonl line 2", *words):
            read(tmp_path, "jsonl", lines[0] + line(text="B", label=label), split="dev")


def test_files_that_are_missing(tmp_path):
    with refused("train.csv", "no such file"):
        read(tmp_path)
    for name in ("train.csv", "train.tsv", "dev.xlsx"):
        (tmp_path / name).write_bytes(b"PK")
    with refused("train.jsonl. Received: train.csv, train.tsv, whose ending names another"):
        read(tmp_path, "jsonl")
    # No --task_name takes these: run_ner's own files and published ones have one ending.
    with pytest.raises(InputError, match="conll/train.txt. Received: train.csv, train.tsv$"):
        find_file("train.txt", str(tmp_path), "conll")
    with pytest.raises(InputError, match="dev.csv. Received: dev.xlsx$"):
        find_file("dev.csv", str(tmp_path), "")


@pytest.mark.parametrize(
    "name, content, words",
    (
        ("a.json", '\n{"text": "가"}', ("list of objects, ", "jsonl. Received: '{\"text")),
        ("a.json", "[]", ("must hold an example. Received: none",)),
        ("a.json", "[3]", ("a.json entry 1 must be an object. Received: 3",)),
        ("a.jsonl", " \n", ("must hold an example. Received: none",)),
        ("a.csv", "a,b\n가,1\n", ("--text_column must name a column of ", "Received: a, b")),
        ("a.csv", "text,내용\n가,1\n", ("--text_column must name ", "Received: text, 내용")),
        ("a.csv", "text,b\n가,1\n", ("--label_column must name ", "Received: b")),
        ("a.csv", "text\n가\n", ("--label_column must name ", "Received: no other column")),
    ),
)
def test_columns_that_are_not_found(tmp_path, name, content, words):
    (tmp_path / name).write_text(content, "utf-8")
    with refused(*words):
        find_columns(str(tmp_path / name), Columns(None, None, None))
