"""The console sessions of the pages print what stands below their lines."""

import pytest

from tests.support.console_blocks import sources, with_outputs
from tests.support.crosses import but_slow
from tests.support.readmes import PAGES

METHODS = ("fill_mask", "embed", "nearest", "hidden_states", "attention")
TEXTS = {
    language: "".join(page.read_text(encoding="utf-8") for page in pages)
    for language, pages in PAGES.items()
}


# Both show the same lines, see the next test.
@pytest.mark.parametrize("language", but_slow(TEXTS, ["en"]))
def test_output_is_what_the_lines_print(language):
    """If not: python -m tests.support.console_blocks README*.md docs/python*.md"""
    assert with_outputs(TEXTS[language]) == TEXTS[language]


def test_both_languages_show_the_same_lines():
    codes = [[line.split("  #")[0].rstrip() for line in sources(text)] for text in TEXTS.values()]
    assert codes[0] == codes[1] and len(codes[0]) > 5
    assert all(any(f"model.{name}(" in line for line in codes[0]) for name in METHODS)


def test_another_output_is_noticed():
    text = "```pycon\n>>> 1 + 1\n3\n>>> for i in range(2):\n...     print(i)\n```\n"
    shown = "```pycon\n>>> 1 + 1\n2\n>>> for i in range(2):\n...     print(i)\n0\n1\n```\n"
    assert with_outputs(text) == shown
