"""Custom data sets: columns, splits, labels, and one line for what does not fit."""

import json

import pytest

from bert_common.errors import InputError
from finetuning.classification.columns import Columns
from finetuning.classification.custom_data import DEFAULT_METRICS, custom_dataset
from finetuning.readers import read_split
from tests.support.refusals import refused
from tests.support.task_data import write_table


def objects(*entries):
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def dataset(folder, kind="tsv", task_type="single_label", **changes):
    options = {name: changes.pop(name, None) for name in ("labels", "metrics")}
    return custom_dataset(kind, str(folder), task_type, Columns(**changes), **options)


def examples(dataset, folder, split="train"):
    found, left_out = read_split(dataset, split, str(folder))
    assert left_out == {}
    return [(e.text, e.second, e.label) for e in found]


def test_a_table_with_a_header(tmp_path):
    rows = [("b", "좋다", "x"), ("a", "나쁘다", "y"), ("b", "so so", "z")]
    write_table(tmp_path / "train.tsv", ["label", "text", "other"], rows)
    write_table(tmp_path / "dev.tsv", ["text", "label"], [("글", "b")])
    write_table(tmp_path / "test.tsv", ["other", "text"], [("t1", "글")])
    made = dataset(tmp_path)
    assert made.labels == ("a", "b") and made.metrics == DEFAULT_METRICS["single_label"]
    assert made.splits == {"train": True, "dev": True, "test": False}
    assert examples(made, tmp_path) == [
        ("좋다", None, 1), ("나쁘다", None, 0), ("so so", None, 1),
    ]  # fmt: skip
    assert examples(made, tmp_path, "test") == [("글", None, None)]
    (example,), _ = read_split(made, "dev", str(tmp_path))
    assert example.id == f"{tmp_path}/dev.tsv line 2"
    # A pair, with names.
    made = dataset(tmp_path, second="other", id="other")
    found, _ = read_split(made, "train", str(tmp_path))
    assert [(e.id, e.second) for e in found] == [("x", "x"), ("y", "y"), ("z", "z")]
    (example,), _ = read_split(made, "test", str(tmp_path))
    assert (example.id, example.second, example.label) == ("t1", "t1", None)


def test_a_table_without_a_header(tmp_path):
    write_table(tmp_path / "train.tsv", (), [("10", "A", "B"), ("9", "C", "D"), ("10", "E", "F")])
    write_table(tmp_path / "test.tsv", (), [("9", "G", "H")])
    made = dataset(tmp_path, text="1", second="2", label="0")
    assert made.labels == ("9", "10")  # numbers in their order
    assert made.splits == {"train": True, "test": True}
    assert examples(made, tmp_path) == [("A", "B", 1), ("C", "D", 0), ("E", "F", 1)]
    # A test whose rows end before the label.
    write_table(tmp_path / "train.tsv", (), [("A", "x"), ("B", "y")])
    write_table(tmp_path / "test.tsv", (), [("G",)])
    made = dataset(tmp_path, text="0", label="1")
    assert made.splits == {"train": True, "test": False}
    assert examples(made, tmp_path, "test") == [("G", None, None)]


def test_the_order_of_labels_of_one_number(tmp_path):
    """It is the same in every process, whatever the order of a set."""
    labels = tuple("0" * count + "1" for count in range(6, -1, -1))
    write_table(tmp_path / "train.tsv", (), [(label, "A") for label in ("2", *labels)])
    assert dataset(tmp_path, text="1", label="0").labels == (*labels, "2")


def test_json_lines(tmp_path):
    rows = [{"a": {"b": "글"}, "y": 2, "id": 7}, {"a": {"b": "nay"}, "y": 10, "id": 8}]
    (tmp_path / "train.jsonl").write_text(objects(*rows))
    (tmp_path / "test.jsonl").write_text(objects({"a": {"b": "x"}, "id": 9}))
    made = dataset(tmp_path, "jsonl", text="a.b", label="y", id="id")
    assert made.labels == ("2", "10") and made.splits == {"train": True, "test": False}
    assert examples(made, tmp_path) == [("글", None, 0), ("nay", None, 1)]
    (example,), _ = read_split(made, "test", str(tmp_path))
    assert (example.id, example.label) == ("9", None)
    # A key may have dots of its own, as columns of nested objects that pandas flattened.
    (tmp_path / "train.jsonl").write_text(objects({"a.b": "글", "y": 2}, {"a.b": "nay", "y": 10}))
    (tmp_path / "test.jsonl").unlink()
    made = dataset(tmp_path, "jsonl", text="a.b", label="y")
    assert examples(made, tmp_path) == [("글", None, 0), ("nay", None, 1)]


def test_several_labels(tmp_path):
    """As text with commas, as a list; none at all is an answer too."""
    rows = [("A", "joy, fear"), ("B", ""), ("C", "anger")]
    write_table(tmp_path / "train.tsv", ["text", "label"], rows)
    for none in ([], None, "", "tsv"):
        lists = zip("ABC", [["joy", "fear"], none, ["anger"]], strict=True)
        (tmp_path / "train.jsonl").write_text(
            objects(*({"text": text, "label": each} for text, each in lists))
        )
        kind = "jsonl" if none != "tsv" else none
        made = dataset(tmp_path, kind, "multi_label")
        assert made.labels == ("anger", "fear", "joy") and made.multi_label
        assert made.metrics == DEFAULT_METRICS["multi_label"]
        labels = [label for *_, label in examples(made, tmp_path)]
        assert labels == [(0, 1, 1), (0, 0, 0), (1, 0, 0)]


def test_brackets_and_quotes_may_be_in_labels(tmp_path):
    rows = [("A", "[x],[y z]"), ("B", "'x'"), ("C", "[x]")]
    write_table(tmp_path / "train.tsv", ["text", "label"], rows)
    assert dataset(tmp_path, "tsv", "multi_label").labels == ("'x'", "[x]", "[y z]")


def test_regression(tmp_path):
    write_table(tmp_path / "train.tsv", ["text", "label"], [("A", "-0.5"), ("B", "3e1")])
    made = dataset(tmp_path, task_type="regression")
    assert made.labels == () and made.metrics == DEFAULT_METRICS["regression"]
    assert [label for *_, label in examples(made, tmp_path)] == [-0.5, 30.0]


def test_labels_that_are_given(tmp_path):
    """Their order is that of the classes; then no training file is needed."""
    write_table(tmp_path / "dev.tsv", ["text", "label"], [("A", "yes")])
    made = dataset(tmp_path, labels=["yes", "no", "never"], metrics=["matthews", "accuracy"])
    assert made.labels == ("yes", "no", "never") and made.metrics == ("matthews", "accuracy")
    assert made.splits == {"dev": True}
    assert examples(made, tmp_path, "dev") == [("A", None, 0)]
    with pytest.raises(InputError, match="where neither training file nor model has them"):
        dataset(tmp_path)


LINES = "text\tlabel\nA\tx\nB\ty\n"


@pytest.mark.parametrize(
    "content, changes, words",
    (
        (None, {}, ("train.tsv", "no such file")),
        ("", {}, ("train.tsv", "empty")),
        ("text\tlabel\n", {}, ("train.tsv", "two different labels", "none")),
        ("text\tlabel\nA\tx\nB\tx\n", {}, ("train.tsv", "two different labels", "x")),
        ("text\tlabel\nA\tx,y\nB\tx\n", {}, ("train.tsv line 2", "comma", "'x,y'")),
        ("text\tlabel\nA\tx\nB\n", {}, ("train.tsv line 3", "2 columns", "1")),
        ("text\tlabel\nA\tx\nB\t\n", {}, ("train.tsv line 3", "must not be empty", "''")),
        ("words\tlabel\nA\tx\n", {}, ("train.tsv line 1", "text", "words, label")),
        (LINES, {"second": "other"}, ("train.tsv line 1", "other")),
        (LINES, {"labels": ["x", "z"]}, ("train.tsv line 3", "x, z", "'y'")),
        (LINES, {"labels": ["x"]}, ("--labels", "two different", "x")),
        (LINES, {"labels": ["x", "x"]}, ("--labels", "two different", "x,x")),
        (LINES, {"labels": ["x", ""]}, ("--labels", "two different", "x,")),
        (LINES, {"metrics": ["acuracy"]}, ("--metrics", "accuracy, f1", "acuracy")),
        (LINES, {"metrics": ["pearson"]}, ("--task_type=single_label", "pearson")),
        (LINES, {"text": "0"}, ("all be names, or all be numbers", "0, label")),
        (LINES, {"task_type": "regression"}, ("train.tsv line 2", "a number", "'x'")),
        (LINES, {"task_type": "regression", "metrics": ["accuracy"]}, ("pearson", "accuracy")),
        (LINES, {"task_type": "multi_label", "metrics": ["matthews"]}, ("micro_f1", "matthews")),
        (LINES + "C\tz\n", {"metrics": ["f1"]}, ("two labels", "3 labels")),
    ),
)
def test_one_line_for_a_table(tmp_path, content, changes, words):
    if content is not None:
        (tmp_path / "train.tsv").write_text(content)
    with refused(*words):
        examples(dataset(tmp_path, **changes), tmp_path)


@pytest.mark.parametrize(
    "content, task_type, words",
    (
        ("{", "single_label", ("train.jsonl line 1", "JSON")),
        (objects({"text": "A"}), "single_label", ("line 1", "'label'", "text")),
        (objects({"text": "A", "label": None}), "single_label", ("line 1", "label", "None")),
        (objects({"text": "A", "label": ["x"]}), "single_label", ("line 1", "label", "['x']")),
        (objects({"text": "A", "label": [["x"]]}), "multi_label", ("line 1", "['x']")),
        (objects({"text": "A", "label": ["x,y"]}), "multi_label", ("line 1", "comma", "'x,y'")),
        (objects({"text": "A", "label": None}), "regression", ("line 1", "not be empty", "None")),
        (objects({"text": 3, "label": 1}), "regression", ("line 1", "a string", "3")),
    ),
)
def test_one_line_for_objects(tmp_path, content, task_type, words):
    (tmp_path / "train.jsonl").write_text(content)
    with refused(*words):
        examples(dataset(tmp_path, "jsonl", task_type), tmp_path)


def test_labels_that_training_does_not_have(tmp_path):
    """Those of training are all that there are; a label that is null is none."""
    known = {"text": "A", "label": "x"}
    (tmp_path / "train.jsonl").write_text(objects(known, {"text": "B", "label": "y"}))
    for label, word in (("z", "'z'"), (None, "None")):
        (tmp_path / "dev.jsonl").write_text(objects(known, {"text": "B", "label": label}))
        with pytest.raises(InputError, match=f"dev.jsonl line 2.*{word}"):
            examples(dataset(tmp_path, "jsonl"), tmp_path, "dev")
