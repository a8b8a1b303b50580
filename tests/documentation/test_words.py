"""The guides use one word for one thing, as the table in CONTRIBUTING.md says."""

import re

import pytest

from tests.support.paths import ROOT
from tests.support.readmes import DOCS

# Made from the code; or quoting messages, each of which is looked at where it is written.
MADE = ("flags", "reference", "migration-flags", "troubleshooting")

TABLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Words\n")[1]
ROWS = re.findall(r"^\| (English|Korean) \| [^|]+ \| ([^|]+) \|$", TABLE, re.MULTILINE)

PAGES = [
    path
    for path in (*ROOT.glob("README*.md"), *sorted(DOCS.glob("*.md")))
    if path.name.split(".")[0] not in MADE
]


def test_the_table_is_short():
    assert 15 < len(ROWS) <= 25


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_has_a_word_that_is_out(path):
    language = "Korean" if path.name.endswith(".ko.md") else "English"
    out = [word for row, words in ROWS if row == language for word in words.split(", ")]
    text = path.read_text(encoding="utf-8")
    found = [
        f"line {number}: {word}"
        for number, line in enumerate(text.splitlines(), start=1)
        for word in out
        if word in line
    ]
    assert found == []
