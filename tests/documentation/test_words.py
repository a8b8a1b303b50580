"""Pages and code use one word for one thing, as the table in CONTRIBUTING.md says."""

import re

import pytest

from tests.support.paths import MODULES, ROOT, WHEEL
from tests.support.readmes import DOCS

# Words that are out of the packages' text too: docstrings, comments, helps, messages.
OUT_OF_CODE = ("that of", "those of", "Without it:", "by heart")

TABLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Words\n")[1]
ROWS = re.findall(r"^\| (English|Korean) \| [^|]+ \| ([^|]+) \|$", TABLE, re.MULTILINE)

PAGES = [*ROOT.glob("README*.md"), *sorted(DOCS.glob("*.md"))]


def lines_with(words, path):
    """The lines of a file that have one of some words."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"line {number}: {word}"
        for number, line in enumerate(lines, start=1)
        for word in words
        if word in line
    ]


def test_the_table_is_short():
    assert 15 < len(ROWS) <= 25


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_has_a_word_that_is_out(path):
    language = "Korean" if path.name.endswith(".ko.md") else "English"
    out = [word for row, words in ROWS if row == language for word in words.split(", ")]
    assert lines_with(out, path) == []


def test_the_words_of_code_are_in_the_table():
    assert {*OUT_OF_CODE} <= {word for _, words in ROWS for word in words.split(", ")}


@pytest.mark.parametrize("folder", sorted(WHEEL))
def test_no_package_has_a_word_that_is_out(folder):
    paths = [ROOT / path for path in MODULES if path.parts[0] == folder]
    found = {str(path): lines_with(OUT_OF_CODE, path) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}
