"""The page in a browser without a screen: typed into, clicked, by the keyboard alone."""

import contextlib
import itertools
import threading

import numpy as np
import pytest
from explore_page import served

from korean_bert import load_model
from tests.support.models.model_folders import write_folder, write_model
from tests.support.models.served_models import write_strong_folder

pytest.importorskip("selenium", reason="the extra test is not installed")
from explore_browser import (  # noqa: E402
    bars,
    check_console,
    choose,
    click,
    find,
    open_page,
    open_tab,
    percent,
    pieces,
    set_screen,
    value,
    wait_until,
    wait_until_ready,
    write,
)
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

pytestmark = pytest.mark.slow
TEXT, MASKED = "나는 학교에 갔다.", "나는 학교[MASK] 갔다."
SET_TEXT = (
    "const field = document.getElementById('text'); field.value = arguments[0];"
    "field.dispatchEvent(new Event('input', {bubbles: true}))"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_folder(folder, sizes={"initializer_range": 0.4})
    return load_model(folder)


@pytest.fixture(scope="module")
def port(model):
    with served(model, [("letters", list)]) as port:
        yield port


@pytest.fixture
def page(browser, port):
    """The page as it is first seen, with a text of the model's vocabulary in it."""
    open_page(browser, port)
    write(browser, "text", TEXT)
    return browser


def test_masked_by_a_click_and_filled_in(page, model):
    assert pieces(page) == ["나", "##는", "학교", "##에", "갔", "##다", "."]
    assert find(page, "#pieces .piece")[3].text.split("\n")[1:] == ["13", "5–6"]
    hues = [each.get_attribute("class") for each in find(page, "#pieces .word")]
    assert hues == [f"word hue-{i}" for i in range(4)]
    click(page, "#pieces .piece", 3)
    assert value(page, "text") == MASKED and pieces(page)[3] == "[MASK]"
    (expected,) = model.fill_mask(MASKED, 8)
    assert bars(page, "guesses") == [(g.text, percent(g.probability)) for g in expected]
    assert "에" in find(page, "#guesses h3")[0].text
    click(page, "#guesses button", 1)
    assert value(page, "text") == MASKED.replace("[MASK]", expected[1].text)
    write(page, "text", TEXT)
    for number, text in ((0, "[MASK]는 학교에 갔다."), (4, "[MASK]는 학교에 [MASK]다.")):
        click(page, "#pieces .piece", number)
        assert value(page, "text") == text
    page.find_element(By.ID, "text").send_keys(Keys.END, " 나")  # typing keeps what masks hide
    wait_until_ready(page)
    for number in (0, 4):
        click(page, "#pieces .piece", number)
    assert value(page, "text") == f"{TEXT} 나"
    check_console(page)


def test_every_tab_reads_the_text_as_it_stands(page):
    click(page, "#pieces .piece", 3)
    open_tab(page, "cuts")
    shown = find(page, "#cuts .cut")[0].find_elements(By.CSS_SELECTOR, ".piece")
    assert [each.text for each in shown] == ["나", "##는", "학교", "[MASK]", "갔", "##다", "."]


def test_a_long_text_leaves_the_answers_in_sight(page):
    page.execute_script(SET_TEXT, "나는 학교에 갔다.\n" * 200)
    wait_until_ready(page)
    field = page.find_element(By.ID, "text")
    assert field.size["height"] <= 0.45 * page.execute_script("return innerHeight")


def test_characters_of_two_units_and_whole_words(page):
    page.execute_script(SET_TEXT, "😀😀 나는 학교에 갔다.")
    wait_until_ready(page)
    find(page, "[name=unit][value=word]")[0].click()
    click(page, "#pieces .piece", pieces(page).index("학교"))
    assert value(page, "text") == "😀😀 나는 [MASK] 갔다."
    assert len(find(page, "#guesses .bars")) == 1
    click(page, "#pieces .masked")
    assert value(page, "text") == "😀😀 나는 학교에 갔다."


def test_the_keyboard_alone(page, model):
    keys = ActionChains(page)
    find(page, "#pieces .piece")[0].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    keys.send_keys(Keys.ENTER).perform()
    wait_until_ready(page)
    assert value(page, "text") == MASKED
    assert page.switch_to.active_element.text.startswith("[MASK]")  # the focus stays there
    ActionChains(page).send_keys(Keys.ENTER).perform()
    wait_until_ready(page)
    assert value(page, "text") == TEXT
    page.find_element(By.ID, "tab-pieces").send_keys(Keys.ARROW_RIGHT)
    wait_until_ready(page)
    assert page.find_element(By.ID, "panel-attention").is_displayed()
    assert not page.find_element(By.ID, "panel-pieces").is_displayed()
    ActionChains(page).send_keys(Keys.END).perform()
    assert page.switch_to.active_element.get_attribute("id") == "tab-cuts"
    wait_until_ready(page)
    assert [each.text.split("\n")[0] for each in find(page, "#cuts h3")][1].startswith("letters")
    check_console(page)


def test_attention_of_chosen_heads(page, model):
    open_tab(page, "attention")
    expected = model.attention(TEXT)
    choose(page, "layer", "2")
    choose(page, "head", "3")
    rows = find(page, "#attention .left .row")
    assert [row.text for row in rows] == list(expected.pieces)
    shares = expected.probabilities[1, 2].round(4)  # [T, T]
    strong = np.minimum(shares.max(axis=1, keepdims=True), 2 / len(rows)) <= shares
    assert len(find(page, "#attention line")) == strong.sum() < shares.size / 2
    ActionChains(page).move_to_element(rows[3]).perform()
    shares = [each.text for each in find(page, "#attention .share")]
    assert shares == [percent(round(float(s), 4)) for s in expected.probabilities[1, 2, 3]]
    shown = len(find(page, "#attention line"))
    rows[3].click()
    rows[3].send_keys(Keys.ARROW_DOWN)
    assert find(page, "#attention .row[aria-pressed=true]")[0].text == expected.pieces[4]
    assert 0 < shown <= len(rows)
    find(page, "#heads button")[5].click()  # the second of layer 2
    wait_until_ready(page)
    assert (value(page, "layer"), value(page, "head")) == ("2", "2")
    find(page, "[name=view][value=grid]")[0].click()
    canvas = find(page, "#attention canvas")[0]
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    share = percent(round(float(expected.probabilities[1, 1, 1, 2]), 4))
    assert find(page, "#attention .readout")[0].text == f"나에서 ##는: {share}"
    page.find_element(By.ID, "special").click()
    page.find_element(By.CSS_SELECTOR, "[name=view][value=lines]").click()
    assert [row.text for row in find(page, "#attention .left .row")] == list(expected.pieces)[1:-1]
    check_console(page)


def test_words_and_texts(page, model):
    open_tab(page, "neighbours")
    write(page, "word", "학교")
    expected = model.nearest("학교", 15)
    assert bars(page, "neighbours")[0] == (expected[0].piece, f"{expected[0].similarity:.3f}")
    open_tab(page, "similarity")
    write(page, "first-text", TEXT)
    write(page, "other-text", "the red book")
    for pooling in ("mean", "cls"):
        choose(page, "pooling", pooling)
        first, second = model.embed([TEXT, "the red book"], pooling, (0, 1, 2))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        expected = (first * second).sum(axis=1) / lengths
        shown = [float(line.split()[-1]) for _, line in bars(page, "similarity")]
        assert shown == pytest.approx(expected, abs=0.0006)
    open_tab(page, "search")
    write(page, "query", TEXT)
    write(page, "lines", "the red book\n\n 나는 학교 \n학교에 갔다 .\n")
    hits = model.search(TEXT, ["the red book", "나는 학교", "학교에 갔다 ."])
    shown = [" ".join(row) for row in bars(page, "search")]
    assert shown == [f"{hit.text} {hit.score:.3f}" for hit in hits]
    write(page, "query", " ")
    assert "찾을 글과 검색할 줄을" in page.find_element(By.ID, "search").text
    open_tab(page, "senses")
    assert "배" in find(page, "#senses .big, #senses .error")[0].text
    write(page, "sense-word", "학교")
    assert find(page, "#senses .error")[0].text.startswith("두 문장에 모두 있는 단어라야 합니다")
    write(page, "first-sentence", "나는 학교에 갔다")
    write(page, "other-sentence", "the 학교 is red")
    assert len(find(page, "#senses .scatter .is-word")) == 2
    assert len(find(page, "#senses .scatter text")) == 6 + 4
    assert covered_labels(page) == []
    choose(page, "sense-layer", "0")
    assert "층 0" in find(page, "#senses .big")[0].text
    refused = [each["message"] for each in page.get_log("browser") if "400" not in each["message"]]
    assert refused == []


def covered_labels(page):
    """Pairs of the picture's labels that stand on each other; their boxes have 2 pixels of air."""
    boxes = page.execute_script(
        "return [...document.querySelectorAll('#senses .scatter text')].map(each => {"
        "const { x, y, width, height } = each.getBBox();"
        "return [each.textContent, x, y, width, height] })"
    )
    return [
        (a[0], b[0])
        for a, b in itertools.combinations(boxes, 2)
        if min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1]) > 2
        and min(a[2] + a[4], b[2] + b[4]) - max(a[2], b[2]) > 4
    ]


def test_languages_and_colours(page):
    def background():
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    assert page.find_element(By.TAG_NAME, "h1").text == "모델 들여다보기"
    choose(page, "language", "en")
    assert page.find_element(By.TAG_NAME, "h1").text == "Inside a model"
    assert page.find_element(By.TAG_NAME, "html").get_attribute("lang") == "en"
    assert find(page, "#pieces .note")[0].text.startswith("9 tokens")
    set_screen(page, 1000, scheme="dark")
    dark = background()
    assert dark != light
    choose(page, "theme", "light")
    assert background() == light
    page.refresh()
    wait_until_ready(page)
    assert page.find_element(By.TAG_NAME, "h1").text == "Inside a model" and background() == light


def test_a_narrow_screen_and_nothing_from_elsewhere(browser, port):
    open_page(browser, port, width=400)
    for button in find(browser, "[role=tab]"):
        button.click()
        wait_until_ready(browser)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    addresses = browser.execute_script(
        "return performance.getEntriesByType('resource').map(each => each.name)"
    )
    assert addresses and all(each.startswith(f"http://127.0.0.1:{port}/") for each in addresses)
    unnamed = "return [...document.querySelectorAll('button, input, select, textarea, canvas')]"
    unnamed += ".filter(e => !(e.ariaLabel || e.textContent.trim() || e.labels?.length"
    unnamed += " || e.getAttribute('aria-labelledby') || e.closest('button[aria-label]')))"
    assert browser.execute_script(f"{unnamed}.map(e => e.outerHTML)") == []


def test_refusals_in_the_page_s_language(page, model, monkeypatch):
    """Where it may help later, with a button."""
    open_tab(page, "attention")
    write(page, "text", "나 " * 40)
    (shown,) = find(page, "#attention .error")
    assert "토큰이 42개입니다" in shown.text and "32개까지" in shown.text
    choose(page, "language", "en")
    (shown,) = find(page, "#attention .error")
    assert shown.text.startswith("The text has 42 tokens") and "at most 32." in shown.text
    nearest = model.nearest
    monkeypatch.setattr(model, "nearest", lambda *_: 1 / 0)
    open_tab(page, "neighbours")
    (shown,) = find(page, "#neighbours .error")
    assert "ZeroDivisionError" in shown.text
    monkeypatch.setattr(model, "nearest", nearest)
    click(page, "#neighbours .error button")
    assert len(bars(page, "neighbours")) > 9 and find(page, "#neighbours .error") == []


def test_a_page_that_waits_says_so(page, model, monkeypatch):
    go_on = threading.Event()
    nearest = model.nearest
    monkeypatch.setattr(model, "nearest", lambda *all: go_on.wait(60) and nearest(*all))
    try:
        page.find_element(By.ID, "tab-neighbours").click()
        wait_until(page, lambda each: "계산" in each.find_element(By.ID, "status").text)
        page.find_element(By.ID, "tab-similarity").click()
        page.find_element(By.ID, "tab-cuts").click()
        # The first is computed; the others wait.
        wait_until(page, lambda each: len(each.execute_script(WAITING)) == 2)
    finally:
        go_on.set()
    wait_until_ready(page)


WAITING = "return [...document.querySelectorAll('#similarity[aria-busy], #cuts[aria-busy]')]"


# === Fine-tuned models ===


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
    for second in (None, "the book is red"):
        if second:
            find(browser, "#second-field summary")[0].click()
            write(browser, "second", second)
        expected = model.predict((TEXT, second) if second else TEXT)
        assert find(browser, "#prediction .big")[0].text == expected.label
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
