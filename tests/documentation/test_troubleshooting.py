"""The page about error messages quotes messages of the code, the same ones in both languages."""

import ast
import re

import pytest

from tests.support.paths import MODULES, ROOT, WHEEL
from tests.support.readmes import DOCS

PAGES = ("troubleshooting.md", "troubleshooting.ko.md")

# Stands in a message of the code for what is filled in when it is printed.
GAP = "\0"

# What stands in a quote for the same.
PLACEHOLDER = re.compile(r"…|\bFILE(?:,? (?:line|record|row) N)?\b|\b(?:FOLDER|FLAG|N)\b")

# A quote with fewer characters of its own is of too many messages.
SHORT = 10


def message_template(node):
    """The text of an expression, with `GAP` for everything that is not known."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(message_template, node.values))
    if isinstance(node, ast.BinOp):
        return message_template(node.left) + message_template(node.right)
    return GAP


def code_messages():
    """Every text of the packages, docstrings aside, with `GAP` for what is filled in."""
    messages = set()
    for path in (path for path in MODULES if path.parts[0] in WHEEL):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (
            n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr | ast.Constant | ast.BinOp)
        )
        messages |= {message_template(node) for node in texts if node not in docstrings}
    return messages


def is_quote_of(quote, message):
    """Whether a quote is a message up to "Received:", or with "…" at its end, the beginning of one.

    A placeholder stands for any text, as the message's gaps are not known.
    """
    words = ".*".join(map(re.escape, PLACEHOLDER.split(quote)))
    end = ".*" if quote.endswith("…") else rf"(?:\. Received: .*|{GAP}.*)?"
    return re.fullmatch(words + end, message, re.DOTALL) is not None


def quotes(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^\*\*`([^`]+)`\*\*$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_short(page):
    assert 40 < len(set(quotes(page))) == len(quotes(page)) <= 70


def test_every_entry_is_of_a_message():
    messages = code_messages()
    unknown = [q for q in quotes(PAGES[0]) if not any(is_quote_of(q, m) for m in messages)]
    assert unknown == []
    own = {quote: PLACEHOLDER.sub("", quote).strip(" .:,;-") for quote in quotes(PAGES[0])}
    assert [quote for quote, text in own.items() if len(text) < SHORT] == []


def test_both_languages_have_the_same_entries():
    english, korean = map(quotes, PAGES)
    assert english == korean
