"""JSON with half an emoji becomes text that can be written: every reader parses it alike."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.engine.splitting import document_text
from finetuning.question_answering.data import read_questions
from tests.support.task_data import squad_content, write_questions

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


def test_brackets_without_end_are_one_line():
    """Of a corpus; `test_json_that_no_reader_takes` has the other readers."""
    with pytest.raises(InputError, match="nested too deeply") as error:
        document_text(DEEP, "text", lambda: "text.jsonl line 1")
    assert len(str(error.value)) < 300
