"""Every reader of a user's own files takes the encodings that Korean programs write."""

import json

import pytest

from finetuning.inputs import read_pairs
from finetuning.multiple_choice.data import read_choices
from finetuning.question_answering.data import read_questions
from finetuning.tables import read_objects, read_table, read_text
from tests.support.task_data import as_table

ROWS = [("배송이 빨라요", "긍정"), ("두 줄에\n걸친", "부정")]
OBJECT = {"context": "학교에 갔다.", "question": "어디에?", "options": ["예", "집"], "label": 1}
QUESTION = {"id": "a", "question": "어디에?", "answers": [{"text": "학교", "answer_start": 0}]}
ARTICLE = {"paragraphs": [{"context": "학교에 갔다.", "qas": [QUESTION]}]}


def as_json(value):
    return json.dumps(value, ensure_ascii=False)


# The name of a file, its content, and the function that reads it.
READERS = {
    "pairs": ("a.txt", "나는 학교에 갔다. ||| 비가 온다.\r\n하나\n", read_pairs),
    "table": ("a.csv", as_table(ROWS), read_table),
    "tsv": ("a.tsv", "text\tlabel\n배송이 빨라요\t긍정\n", read_table),
    "list": ("a.json", as_json([OBJECT]), lambda path: [*read_objects(path)]),
    "choices": ("a.jsonl", f"{as_json(OBJECT)}\r\n" * 2, read_choices),
    "questions": ("a.json", as_json({"data": [ARTICLE]}), read_questions),
}


@pytest.mark.parametrize("encoding", ("utf-8-sig", "utf-16", "cp949"))
@pytest.mark.parametrize("name, content, read", READERS.values(), ids=READERS)
def test_every_encoding(tmp_path, name, content, read, encoding):
    path = tmp_path / name
    path.write_bytes(content.encode("utf-8"))
    plain = read(str(path))
    path.write_bytes(content.encode(encoding))
    assert read(str(path)) == plain


def test_an_encoding_is_said_once_by_whatever_path(tmp_path, monkeypatch, capsys):
    (tmp_path / "리뷰.csv").write_bytes(as_table(ROWS).encode("cp949"))
    monkeypatch.chdir(tmp_path)
    for path in ("리뷰.csv", str(tmp_path / "리뷰.csv"), "./리뷰.csv"):
        read_text(path)
    assert capsys.readouterr().err == "note: 리뷰.csv is read as cp949 (Korean Windows, EUC-KR)\n"
