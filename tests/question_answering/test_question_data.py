"""Files of questions: what is read, and the errors of those that cannot be."""

import json

import pytest

from bert_common.errors import InputError
from finetuning.question_answering.data import (
    IGNORED,
    LEFT_OUT,
    MOVED,
    NOT_FOUND,
    Answer,
    read_questions,
)
from tests.support.refusals import refused
from tests.support.task_data import (
    CONTEXTS,
    squad_content,
    squad_entry,
    squad_file,
    write_questions,
)


def test_what_is_read(tmp_path):
    path = write_questions(tmp_path / "q.json", squad_content())
    questions, moved = read_questions(path, version_2_with_negative=True)
    assert [question.id for question in questions] == ["a", "b", "c", "d", "e"] and moved == {}
    assert questions[0].answers == (Answer("임종석", 0),)
    assert questions[1].answers == (Answer("1989년 2월 15일", 5), Answer("2월 15일", 11))
    assert [question.is_impossible for question in questions] == [False] * 3 + [True, False]
    assert questions[3].answers == ()
    assert [question.context for question in questions] == [CONTEXTS[0]] * 4 + [CONTEXTS[1]]
    assert questions[0].context is questions[3].context
    assert questions[1].question == "언제?"


def test_klue_names_questions_otherwise(tmp_path):
    made = squad_content()
    for each in entries_of(made):
        each["guid"] = "klue-" + each.pop("id")
        each["question_type"] = 1
    questions, _ = read_questions(write_questions(tmp_path / "q.json", made), True)
    assert questions[4].id == "klue-e"


def entries_of(content):
    (article,) = content["data"]
    return [entry for paragraph in article["paragraphs"] for entry in paragraph["qas"]]


def one_paragraph(path, context, *entries):
    """Writes a file of questions about one text."""
    return write_questions(path, squad_file([{"context": context, "qas": entries}]))


def three_articles(path):
    """Articles with two, one and three questions; the second has no title."""
    articles = []
    for number, count in enumerate((2, 1, 3)):
        entries = [squad_entry(f"{number}{i}", "서울 부산", "서울") for i in range(count)]
        paragraphs = [{"context": "서울 부산", "qas": [entry]} for entry in entries]
        articles.append({"title": f"글 {number}", "paragraphs": paragraphs})
    del articles[1]["title"]
    return write_questions(path, {"data": articles})


@pytest.mark.parametrize(
    "articles, ids",
    (
        (None, ["00", "01", "10", "20", "21", "22"]),
        ((0, 2), ["00", "01", "10"]),
        ((1, 2), ["10"]),
        ((2, 3), ["20", "21", "22"]),
    ),
)
def test_some_articles(tmp_path, articles, ids):
    questions, _ = read_questions(three_articles(tmp_path / "q.json"), articles=articles)
    assert [question.id for question in questions] == ids
    names = {"0": "글 0", "1": "article 2", "2": "글 2"}
    assert [question.article for question in questions] == [names[key[0]] for key in ids]


def test_without_answers(tmp_path):
    made = squad_content()
    for each in entries_of(made):
        del each["answers"]
    path = write_questions(tmp_path / "q.json", made)
    questions, _ = read_questions(path, with_answers=False)
    assert len(questions) == 5 and not any(question.answers for question in questions)
    with refused("question 'a' must have 'answers'"):
        read_questions(path)


@pytest.mark.parametrize(
    "said, found", ((0, 2), (2, 2), (4, 2), (5, 2), (6, 8), (10, 8), (99, 8), (-3, 2))
)
def test_an_answer_beside_its_place_is_taken_from_the_nearest(tmp_path, said, found):
    context = "..답.....답...."
    entry = squad_entry("x", context, "답")
    entry["answers"][0]["answer_start"] = said
    questions, moved = read_questions(one_paragraph(tmp_path / "q.json", context, entry))
    assert questions[0].answers == (Answer("답", found),)
    assert moved == ({MOVED: 1} if said != found else {})


def changed(where, value):
    """The file with one value changed; `where` leads to it. None: without it."""
    made = squad_content()
    *keys, last = where
    place = made
    for key in keys:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return json.dumps(made).encode()


PARAGRAPH = ("data", 0, "paragraphs", 0)
FIRST = (*PARAGRAPH, "qas", 0)
BROKEN = {
    b"": "empty",
    b"{": "must hold JSON",
    b"\xff": "must hold JSON",
    b"[" * 100_000: "must hold JSON",
    b"{}\n{}": "lines of objects are .jsonl",
    b"[]": r'an object with a list "data". Received: \[\]',
    b'{"questions": []}': "Received: questions",
    b'{"data": []}': "must hold a question. Received: none",
    # as KorQuAD 2 has it
    changed(("data", 0), {"raw_html": "<p>", "qas": []}): "'paragraphs'. Received: raw_html, qas",
    changed((*PARAGRAPH, "context"), None): "paragraph 1 must have 'context'",
    changed((*FIRST, "id"), None): "1 must have 'id', or 'guid' as .* Received: question, answers",
    changed((*FIRST, "id"), "b"): "question 'b': the id must be unique",
    changed((*FIRST, "question"), 3): "'question' must be a string. Received: 3",
    changed((*FIRST, "is_impossible"), "false"): "must be true or false. Received: 'false'",
    changed((*FIRST, "answers"), []): "question 'a' must have an answer. Received: none",
    changed((*FIRST, "answers", 0, "text"), " "): "an answer must have a text. Received: ' '",
    changed((*FIRST, "answers", 0, "text"), "없다"): "in its text .*Received: 1 that is not",
    changed((*FIRST, "answers", 0, "answer_start"), "0"): "must be a whole number. Received: '0'",
}


@pytest.mark.parametrize("data", BROKEN, ids=list(BROKEN.values()))
def test_a_broken_file_is_one_line(tmp_path, data):
    path = tmp_path / "q.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=BROKEN[data]) as error:
        read_questions(path, version_2_with_negative=True)
    assert "q.json" in str(error.value)


def test_a_question_without_an_answer_needs_the_flag(tmp_path):
    path = write_questions(tmp_path / "q.json", squad_content())
    with refused("'d' must have an answer without --version_2_with"):
        read_questions(path)


CONTEXT = "서울은 대한민국의 수도이다."


@pytest.fixture
def bad_answers(tmp_path):
    """A good question, one with a good and a bad answer, and some whose only answer is bad."""
    entries = [squad_entry("good", CONTEXT, "서울"), squad_entry("mixed", CONTEXT, "수도")]
    entries[1]["answers"].append({"text": "부산", "answer_start": 0})
    for number in range(7):
        answer = {"text": f"없는 답 {number}", "answer_start": 0}
        entries.append({**squad_entry(f"bad{number}", CONTEXT), "answers": [answer]})
    return one_paragraph(tmp_path / "q.json", CONTEXT, *entries)


def test_all_bad_answers_are_named_in_one_go(bad_answers):
    said = "Received: 8 that are not: '부산' of question 'mixed'; '없는 답 0' of"
    with refused("every answer must be in its text (--skip_bad_answers", said) as error:
        read_questions(bad_answers)
    assert str(error.value).endswith("; ...")


def test_bad_answers_are_left_out_of_training_and_kept_for_the_score(bad_answers):
    questions, counts = read_questions(bad_answers, bad_answers="leave out")
    assert [question.id for question in questions] == ["good", "mixed"]
    assert [len(question.answers) for question in questions] == [1, 1]
    assert counts == {LEFT_OUT: 7, NOT_FOUND: 8}
    questions, counts = read_questions(bad_answers, bad_answers="keep")
    assert len(questions) == 9 and counts == {NOT_FOUND: 8}
    assert questions[2].answers == (Answer("없는 답 0", -1),)


def test_an_impossible_question_with_answers_has_none(tmp_path):
    """It is trained as one without an answer, so it is scored as one, and the run says so."""
    entry = squad_entry("b", CONTEXT, "수도", is_impossible=True)
    path = one_paragraph(tmp_path / "q.json", CONTEXT, squad_entry("a", CONTEXT, "서울"), entry)
    questions, counts = read_questions(path, True)
    assert questions[1].answers == () and questions[1].is_impossible and counts == {IGNORED: 1}
