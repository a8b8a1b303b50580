"""What is made of the tutorials' texts is fresh; every notebook runs."""

import ast
import base64
import importlib

import pytest
from tutorial_pages import pages
from tutorial_pages.notebooks import notebook_file, notebook_text
from tutorial_pages.texts import LANGUAGES, SUFFIXES, TEXTS, TUTORIALS, cells

from tests.support.libraries import needs
from tests.support.paths import LAYERS, ROOT

NAMES = [path.stem for path in TEXTS]
CASES = [(path, language) for path in TEXTS for language in LANGUAGES]
IDS = [f"{path.stem}-{language}" for path, language in CASES]

RUNS_NOTEBOOKS = ("nbclient", "nbformat", "ipykernel", "matplotlib", "sklearn", "tokenizers")


@pytest.mark.parametrize("path, language", CASES, ids=IDS)
def test_notebooks_are_fresh(path, language):
    """If not: python docs/tutorial_pages"""
    text = notebook_file(path, language).read_text(encoding="utf-8")
    assert text == notebook_text(path, language)


@pytest.mark.parametrize("path", TEXTS, ids=NAMES)
def test_names_that_are_imported_exist(path):
    """Of this project; the notebooks themselves run in the slow tests."""
    code = [cell.source for cell in cells(path, "en") if cell.kind == "python"]
    assert code
    for node in (node for text in code for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in LAYERS:
            module = importlib.import_module(node.module)
            assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)


@pytest.mark.parametrize("path, language", CASES, ids=IDS)
def test_pages_are_fresh(path, language):
    """If not: python docs/tutorial_pages, and with the tutorial's number if its code changed."""
    text = pages.page_file(path, language).read_text(encoding="utf-8")
    code, outputs = pages.outputs_in(text)
    assert code == [tuple(cell) for cell in cells(path, language) if cell.kind != "markdown"]
    assert text == pages.page(path, language, outputs)
    # Folders of the machine that it ran on.
    assert str(ROOT) not in text and "/tmp/" not in text and "/home/" not in text


@pytest.mark.parametrize("path", TEXTS, ids=NAMES)
def test_pictures_are_small_and_shown(path):
    found = {picture.name for picture in pages.PICTURES.glob(f"{path.stem}-*.png")}
    for language in LANGUAGES:
        text = pages.page_file(path, language).read_text(encoding="utf-8")
        assert all(f"(pictures/{name})" in text for name in found)
        assert "![](" not in text  # every picture has its words: tutorial_pages/alt_texts.py
    for name in found:
        assert (pages.PICTURES / name).stat().st_size <= pages.MOST_BYTES


def test_each_file_belongs_to_a_tutorial():
    ends = (".ipynb", ".ko.ipynb", ".md", ".ko.md")
    expected = {f"{name}{end}" for name in NAMES for end in ends} | {"README.md", "README.ko.md"}
    assert {path.name for path in TUTORIALS.iterdir() if path.is_file()} == expected


def test_each_says_what_it_takes_and_what_to_try_next():
    takes = {"ko": "**걸리는 시간**", "en": "**Takes**"}
    following = {"ko": "## 다음에 해 볼 것", "en": "## What to try next"}
    for path, language in CASES:
        first, *_, last = cells(path, language)
        assert takes[language] in first.source, (path, language)
        assert following[language] in last.source, (path, language)


def test_every_tutorial_is_in_the_site_and_in_the_list():
    index = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8").split()
    for path, language in CASES:
        name = pages.page_file(path, language).stem
        assert f"tutorials/{name}" in index
        listed = (TUTORIALS / f"README{SUFFIXES[language]}.md").read_text(encoding="utf-8")
        assert f"({name}.md)" in listed and f"({name}.ipynb)" in listed


def test_a_text_is_read_in_one_language(tmp_path):
    path = tmp_path / "text.md"
    text = "[ko]\n# 가\n[en]\n# A\n```python\na = 1\n```\n\n```bash\nls\n```\n"
    path.write_text(text, encoding="utf-8")
    assert cells(path, "ko") == [("markdown", "# 가"), ("python", "a = 1"), ("bash", "ls")]
    assert cells(path, "en")[0] == ("markdown", "# A")
    page = pages.page(path, "en", [["```text\n1\n```", "![](pictures/a.png)"], []])
    code = [("python", "a = 1"), ("bash", "ls")]
    assert pages.outputs_in(page) == (code, [["```text\n1\n```\n\n![](pictures/a.png)"], []])
    assert page.endswith(
        "a = 1\n```\n\n```text\n1\n```\n\n![](pictures/a.png)\n\n```bash\nls\n```\n"
    )


@pytest.mark.parametrize("text", ("lost\n", "[ko]\n가\n", "[ko]\n[en]\n```python\n```\nlost\n"))
def test_a_text_that_is_no_tutorial(tmp_path, text):
    path = tmp_path / "text.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="text.md"):
        cells(path, "ko")


def test_what_a_cell_prints_becomes_a_part_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "TUTORIALS", tmp_path)
    monkeypatch.setattr(pages, "PICTURES", tmp_path / "pictures")
    path = tmp_path / "texts" / "text.md"
    path.parent.mkdir()
    text = "[ko]\n# 가\n[en]\n# A\n```python\na\n```\n"
    path.write_text(text, encoding="utf-8")
    picture = base64.b64encode(b"png").decode()
    outputs = [
        {"output_type": "stream", "text": " 10 %\r 90 %\rdone \x1b[1mnow\x1b[0m\n"},
        {"output_type": "stream", "text": "W0000 00:00:1.2 3 port.cc:1] of this machine\ntwo\n"},
        {"output_type": "display_data", "data": {"image/png": picture, "text/plain": "<Figure>"}},
        {"output_type": "execute_result", "data": {"text/plain": "3"}},
    ]
    pages.write_pages(path, [outputs])
    assert (tmp_path / "pictures" / "text-1.png").read_bytes() == b"png"
    page = (tmp_path / "text.md").read_text(encoding="utf-8")
    blocks = "```text\ndone now\ntwo\n```\n\n![](pictures/text-1.png)\n\n```text\n3\n```\n"
    assert page.endswith(f"```python\na\n```\n\n{blocks}")
    path.write_text(text.replace("# A", "# B"), encoding="utf-8")
    assert pages.rewrite_pages(path)
    renewed = (tmp_path / "text.md").read_text(encoding="utf-8")
    assert renewed == page.replace("# A", "# B")
    path.write_text(text.replace("\na\n", "\nb\n"), encoding="utf-8")
    assert not pages.rewrite_pages(path)
    assert (tmp_path / "text.md").read_text(encoding="utf-8") == renewed
    with pytest.raises(ValueError, match="Received: 61"):
        pages.write_pages(path, [[{"output_type": "stream", "text": "line\n" * 61}]])
    assert (tmp_path / "pictures" / "text-1.png").exists()  # the old page stays whole


@pytest.mark.slow
@needs(*RUNS_NOTEBOOKS, extra="tutorials")
@pytest.mark.parametrize("path", TEXTS, ids=NAMES)
def test_notebooks_run(path):
    """On what comes with the project; a cell that raises ends it."""
    from tutorial_pages.execution import execute

    outputs = execute(path)
    assert len(outputs) == sum(cell.kind != "markdown" for cell in cells(path, "ko"))
    assert any(outputs)
