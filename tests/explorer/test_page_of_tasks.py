"""The page of fine-tuned models in a browser without a screen: a model of each kind."""

import contextlib

import pytest
from explore_page import served

from korean_bert import load_model
from tests.support.models.model_folders import write_model
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


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the page of a fine-tuned model for a task, and writes into it; the model."""
    with contextlib.ExitStack() as stack:

        def open_with(task, **fields):
            write_strong_folder(tmp_path, task)
            model = load_model(tmp_path)
            open_page(browser, stack.enter_context(served(model)))
            for name, text in fields.items():
                write(browser, name, text)
            return model

        yield open_with
        check_console(browser)


def test_a_classifier(browser, opened):
    model = opened("classification", text=TEXT)
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


def test_entities(browser, opened):
    text = "나는 학교에 갔다. the book is red"
    expected = opened("ner", text=text).predict(text).entities
    assert expected
    shown = find(browser, "#prediction .shown-text")[0].get_property("textContent")
    marks = zip(find(browser, "#prediction mark"), expected, strict=True)
    found = [mark.text.replace(each.kind, "").strip() for mark, each in marks]
    assert found == [each.text for each in expected]
    for each in expected:
        shown = shown.replace(each.kind, "")
    assert shown == text


def test_answers(browser, opened):
    text, question = "나는 학교에 갔다. the book is red", "the book ?"
    model = opened("question_answering", text=text, second=question)
    expected = model.predict((question, text)).answer
    assert find(browser, "#prediction .big")[0].text == expected.text
    assert find(browser, "#prediction mark")[0].text == expected.text
    open_tab(browser, "attention")
    rows = [row.text for row in find(browser, "#attention .left .row")]
    assert rows == list(model.attention(question, text).pieces)


def test_choices(browser, opened):
    options = ("red", "book", "학교")
    fields = {"text": TEXT, "second": "the _ ?", "options": "\n".join(options)}
    expected = opened("multiple_choice", **fields).predict(("the _ ?", TEXT, options))
    assert find(browser, "#prediction .big")[0].text == expected.option
    assert [label for label, _ in bars(browser, "prediction")] == list(options)


def test_vectors_of_texts(browser, tmp_path):
    """The tabs compare two texts by the pooling that the model was trained with."""
    write_model(tmp_path, "bert", "similarity", {"initializer_range": 0.4}, pooling="cls")
    model = load_model(tmp_path)
    with served(model) as address:
        open_page(browser, address)
        # The second text is no question, which would stand before the text.
        assert find(browser, "#second-label")[0].text == "둘째 글"
        first, second = (find(browser, name)[0].location["y"] for name in ("#text", "#second"))
        assert first < second
        write(browser, "second", "")
        assert find(browser, "#prediction .note")[0].text == "두 글을 모두 써 보세요."
        expected = model.predict((TEXT, "the book is red")).label
        write(browser, "text", TEXT)
        write(browser, "second", "the book is red")
        assert f"{expected:.3f}" in find(browser, "#prediction .big")[0].text
        open_tab(browser, "similarity")
        write(browser, "first-text", TEXT)
        write(browser, "other-text", "the book is red")
        assert f"{expected:.3f}" in find(browser, "#similarity .big")[0].text
        check_console(browser)
