"""The benchmark of questions: its split of a file, the answers of its rules."""

import importlib

import pytest
from task_data import squad_entry, write_questions

question_answering = importlib.import_module("question_answering")

TEXT = "바다는 넓다. 세종대왕은 1443년에 훈민정음을 만들었다. 산은 높다."


def test_articles_are_not_shared(tmp_path):
    articles = []
    for article in range(7):
        paragraphs = []
        for text in (f"글 {article} 하나", f"글 {article} 둘"):
            qas = [squad_entry(f"{article} {text[-1]} {number}", text, "글") for number in range(2)]
            paragraphs.append({"context": text, "qas": qas})
        articles.append({"title": str(article), "paragraphs": paragraphs})
    path = write_questions(tmp_path / "q.json", {"version": "1", "data": articles})
    splits = question_answering.split_by_article(path)
    found = {name: {q.id[0] for q in read} for name, read in splits.items()}
    assert found == {"train": set("12346"), "dev": set("05")}
    assert [len(splits[name]) for name in ("train", "dev")] == [20, 8]


@pytest.mark.parametrize(
    ("rule", "expected"),
    zip(
        question_answering.RULES,
        ("바다는", "세종대왕은 1443년에 훈민정음을 만들었다.", "1443년에", "1443년에 훈민정음을"),
        strict=True,
    ),
)
def test_rules(rule, expected):
    question = "세종대왕은 언제 무엇을 만들었다고 하나?"
    assert question_answering.RULES[rule](question, TEXT) == expected
    assert question_answering.RULES[rule](question, "말") == "말"
