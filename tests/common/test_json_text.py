"""JSON with half an emoji becomes text that can be written, wherever JSON is read."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.engine.splitting import InputFile, cut_into_chunks, read_chunk_text
from finetuning.classification.columns import Columns
from finetuning.classification.task import Classification
from finetuning.multiple_choice.data import read_choices, read_race
from finetuning.question_answering.data import read_questions
from finetuning.readers import read_split
from tests.support.own_tables import dataset_of
from tests.support.task_data import squad_content, write_questions, write_tokenizer

HALF = "\ud83d"
DEEP = "[" * 100_000

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ANY_TEXT)
def test_a_lone_surrogate_is_one_other_character(text):
    expected = json.loads(json.dumps(text))  # two halves side by side are a character
    found = parse_json(json.dumps([{text: text}]))
    ((key, value),) = found[0].items()
    assert key == value and len(value) == len(expected)
    assert value == expected.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    value.encode("utf-8")


def test_everything_else_stays():
    value = {"a": [1, 2.5, None, True, "\u0000가\U0001f600"], "b": {}}
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False).encode("utf-8")):
        assert parse_json(text) == value


@pytest.mark.parametrize("text", (DEEP, DEEP.encode(), "9" * 5000, "{", b"\xff"))
def test_what_is_no_json(text):
    with pytest.raises(ValueError) as error:
        parse_json(text)
    assert "\n" not in str(error.value)


def test_classification_writes_what_it_read(tmp_path):
    """Predictions, and the table of the worst mistakes, before which all figures were lost."""
    for name in ("train", "dev"):
        rows = [{"text": f"글 {HALF}", "label": "x", "id": HALF}, {"text": "글", "label": HALF}]
        rows[1]["id"] = "2"
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = dataset_of(tmp_path, "jsonl", columns=Columns(id="id"))
    assert dataset.labels == ("x", "\ufffd")
    read, _ = read_split(dataset, "dev", str(tmp_path))
    task = Classification(dataset, write_tokenizer(tmp_path), 8)
    examples = task.encode(read, training=False)
    outputs = {"logits": [np.array([0.0, 1.0], np.float32)] * 2}
    model = type("Model", (), {"example_losses": lambda *_: np.array([1.0, 2.0])})
    texts = task.illustrations(model, examples, outputs).texts
    assert "글 \ufffd" in texts["most_wrong"].encode("utf-8").decode()
    (path,) = task.write_predictions(str(tmp_path), "dev", examples, outputs)
    with open(path, encoding="utf-8") as file:
        assert "\ufffd\t글 \ufffd\tx\t\ufffd" in file.read()


def test_answers_stay_where_they_are(tmp_path):
    made = squad_content()
    paragraph = made["data"][0]["paragraphs"][0]
    paragraph["context"] = HALF + paragraph["context"]
    for each in paragraph["qas"]:
        for answer in each["answers"]:
            answer["answer_start"] += 1
    paragraph["qas"][0] |= {"id": HALF, "question": HALF}
    questions, moved = read_questions(write_questions(tmp_path / "q.json", made), True)
    assert moved == {} and [question.id for question in questions] == ["\ufffd", *"bcde"]
    assert questions[0].context.startswith("\ufffd임종석") and questions[0].question == "\ufffd"
    assert questions[0].answers[0].start == 1


def test_choices(tmp_path):
    line = {"id": HALF, "context": HALF, "question": HALF, "options": [HALF, "y"], "label": 0}
    (tmp_path / "c.jsonl").write_text(json.dumps(line) + "\n")
    (choice,) = read_choices(tmp_path / "c.jsonl")
    assert choice == ("\ufffd", "\ufffd", "\ufffd", ("\ufffd", "y"), 0)
    for level in ("middle", "high"):
        folder = tmp_path / "dev" / level
        folder.mkdir(parents=True)
        article = {"article": HALF, "questions": [HALF], "options": [[HALF, "y"]], "answers": ["A"]}
        (folder / "\udcff.txt").write_text(json.dumps(article))  # a byte that is not UTF-8
    expected = choice._replace(id="\ufffd.txt-0")
    assert read_race(tmp_path, "dev") == [expected, expected]


def documents(path):
    """Of a small corpus of JSON lines."""
    chunks, _ = cut_into_chunks([InputFile(str(path), str(path), path.stat().st_size, "jsonl")])
    return [document for ranges in chunks for document in read_chunk_text(ranges)]


def test_a_corpus(tmp_path):
    path = tmp_path / "text.jsonl"
    path.write_text(json.dumps({"text": f"글 {HALF}\n{HALF}", "more": HALF}) + "\n")
    assert documents(path) == [["글 \ufffd", "\ufffd"]]


def test_brackets_without_end_are_one_line(tmp_path):
    """Of a corpus; `test_json_that_no_reader_takes` has the other readers."""
    (tmp_path / "deep.jsonl").write_text(DEEP + "\n")
    with pytest.raises(InputError, match="nested too deeply") as error:
        documents(tmp_path / "deep.jsonl")
    assert len(str(error.value)) < 300
