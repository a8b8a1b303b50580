"""The page of fine-tuned models in a browser without a screen: a model of each kind."""

import pytest
from explore_page import served

from korean_bert import load_model
from tests.support.models.served_models import write_strong_folder

pytest.importorskip("selenium", reason="the extra test is not installed")
from explore_browser import (  # noqa: E402
    bars,
    check_console,
    find,
    open_page,
    open_tab,
    percent,
    write,
)

pytestmark = pytest.mark.slow
TEXT = "나는 학교에 갔다."


def fine_tuned(folder, task, **settings):
    write_strong_folder(folder, task, **settings)
    return load_model(folder)


def test_a_classifier(browser, tmp_path):
    model = fine_tuned(tmp_path, "classification")
    with served(model) as port:
        open_page(browser, port)
        write(browser, "text", TEXT)
        expected = model.predict(TEXT)
        assert find(browser, "#prediction .big")[0].text == expected.label
        best = percent(expected.probabilities[expected.label])
        assert bars(browser, "prediction")[0] == (expected.label, best)
        find(browser, "#second-field summary")[0].click()
        write(browser, "second", "the book is red")
        expected = model.predict((TEXT, "the book is red"))
        best = percent(expected.probabilities[expected.label])
        assert bars(browser, "prediction")[0] == (expected.label, best)
        open_tab(browser, "pieces")
        assert find(browser, "#pieces button") == [] and len(find(browser, "#pieces .piece")) == 11
        check_console(browser)


def test_entities(browser, tmp_path):
    model = fine_tuned(tmp_path, "ner")
    text = "나는 학교에 갔다. the book is red"
    with served(model) as port:
        open_page(browser, port)
        write(browser, "text", text)
        expected = model.predict(text).entities
        assert expected
        shown = find(browser, "#prediction .shown-text")[0].get_property("textContent")
        marks = [each.text for each in find(browser, "#prediction mark")]
        assert [
            mark.replace(each.kind, "").strip() for mark, each in zip(marks, expected, strict=True)
        ] == [each.text for each in expected]
        for each in expected:
            shown = shown.replace(each.kind, "")
        assert shown == text
        check_console(browser)


def test_answers(browser, tmp_path):
    model = fine_tuned(tmp_path, "question_answering")
    text, question = "나는 학교에 갔다. the book is red", "the book ?"
    with served(model) as port:
        open_page(browser, port)
        write(browser, "text", text)
        write(browser, "second", question)
        expected = model.predict((question, text)).answer
        assert find(browser, "#prediction .big")[0].text == expected.text
        assert find(browser, "#prediction mark")[0].text == expected.text
        open_tab(browser, "attention")
        rows = [row.text for row in find(browser, "#attention .left .row")]
        assert rows == list(model.attention(question, text).pieces)
        check_console(browser)


def test_choices(browser, tmp_path):
    model = fine_tuned(tmp_path, "multiple_choice")
    options = ("red", "book", "학교")
    with served(model) as port:
        open_page(browser, port)
        write(browser, "text", TEXT)
        write(browser, "second", "the _ ?")
        write(browser, "options", "\n".join(options))
        expected = model.predict(("the _ ?", TEXT, options))
        assert find(browser, "#prediction .big")[0].text == expected.option
        assert [label for label, _ in bars(browser, "prediction")] == list(options)
        check_console(browser)
