"""The page's own files: texts in both languages, nothing from elsewhere."""

import json
import re

from tests.support.paths import ROOT

PAGE = ROOT / "explorer" / "page"
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in PAGE.glob("*.js")}
HTML = (PAGE / "index.html").read_text(encoding="utf-8")
TEXTS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (PAGE / "texts").glob("*.json")
}
# Keys that are put together: the task of the model, the name of a tab.
TASKS = (
    "pretraining", "classification", "ner", "question_answering", "multiple_choice", "similarity",
)  # fmt: skip
TABS = re.findall(r'id="panel-(\w+)"', HTML)
# The code of every error that the program raises -> the values that it sends.
RAISED = {
    code: set(re.findall(r"(\w+)=", values))
    for path in (ROOT / "explorer").glob("*.py")
    for code, values in re.findall(
        r'RequestError\(\s*"(\w+)"([^)]*)', path.read_text(encoding="utf-8")
    )
}
ERRORS = {f"error_{code}" for code in (*RAISED, "gone")}
MADE = {f"task_{task}" for task in TASKS} | {f"tab_{tab}" for tab in TABS}


def test_languages_say_the_same():
    assert set(TEXTS) == {"ko", "en"} and set(TEXTS["ko"]) == set(TEXTS["en"])
    for key, english in TEXTS["en"].items():
        korean = TEXTS["ko"][key]
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", korean))
        assert english.strip() and korean.strip()
    different = [key for key in TEXTS["en"] if TEXTS["en"][key] == TEXTS["ko"][key]]
    assert different == []


def test_texts_have_the_words_of_the_table():
    """A token is called so, and no word is there that CONTRIBUTING.md's table has out."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Words\n")[1]
    for name, language, more in (("en", "English", "piece"), ("ko", "Korean", "조각")):
        rows = re.findall(rf"^\| {language} \| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)
        out = [more, *(word for words in rows for word in words.split(", "))]
        shown = [re.sub(r"\{\w+\}", "", text) for text in TEXTS[name].values()]
        assert [text for text in shown for word in out if word in text.lower()] == []


def test_every_text_is_used_and_every_used_one_exists():
    used = set(re.findall(r'data-(?:text|label)="(\w+)"', HTML)) | MADE | ERRORS
    strings = {text for script in SCRIPTS.values() for text in re.findall(r'"(\w+)"', script)}
    called = {
        key
        for script in SCRIPTS.values()
        for key in re.findall(r'(?<![\w.])(?:app\.|this\.)?t\("(\w+)"', script)
    }
    assert called <= set(TEXTS["en"]) and used <= set(TEXTS["en"])
    assert set(TEXTS["en"]) <= used | strings


def test_refusals_are_told_with_what_the_program_sends():
    told = {key: text for key, text in TEXTS["en"].items() if key.startswith("error_")}
    assert set(told) == ERRORS
    for code, sent in RAISED.items():
        assert set(re.findall(r"\{(\w+)\}", told[f"error_{code}"])) <= sent, code


def test_nothing_comes_from_elsewhere():
    """Neither scripts, styles, fonts nor pictures: the addresses are names of formats alone."""
    files = {**SCRIPTS, "index.html": HTML, "style.css": (PAGE / "style.css").read_text()}
    for name, text in files.items():
        addresses = set(re.findall(r"\w+://[^\s\"']+|url\([^)]*\)|@import", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, name
        assert "innerHTML" not in text and "eval(" not in text, name
    for path in re.findall(r'(?:src|href)="(/[^"]+)"', HTML):
        assert (ROOT / "explorer" / path[1:]).exists()
    for script in SCRIPTS.values():
        for name in re.findall(r'from "\./([\w.]+)"', script):
            assert name in SCRIPTS


def test_every_element_that_scripts_look_for_is_there():
    for script in SCRIPTS.values():
        for name in re.findall(r'(?:getElementById|get|field)\("([\w-]+)"\)', script):
            assert f'id="{name}"' in HTML, name
    ids = re.findall(r' id="([\w-]+)"', HTML)
    assert len(ids) == len(set(ids))
