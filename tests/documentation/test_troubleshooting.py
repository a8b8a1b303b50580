"""The page about error messages quotes those of the code, all of them, in both languages."""

import ast
import re

import pytest
from paths import MODULES, ROOT
from readmes import DOCS

PAGES = ("troubleshooting.md", "troubleshooting.ko.md")
ERRORS = ("InputError", "DamagedCheckpoint", "TooManyPiecesError")

# Stands in a template for what is filled in.
GAP = "\0"

# The page's first entry stands for all messages about a flag's value.
ABOUT_A_FLAG = "--"

# Quotes that say less than this many characters would fit too many messages; they count only for
# messages that say no more themselves.
SHORT = 14


def template(node):
    """The text of an expression, with `GAP` for everything that is not known."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else GAP for part in node.values
        )
    if isinstance(node, ast.BinOp):
        return template(node.left) + template(node.right)
    return GAP


def raised_messages():
    """Template of each error's message -> where it is."""
    found = {}
    for path in MODULES:
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS and node.args:
                found[template(node.args[0])] = f"{path}:{node.lineno}"
    return found


def quoted_messages(page):
    """The messages of the page's first columns, in their order."""
    rows = re.findall(r"^\| (`.*?`) \| ", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    return [quote for row in rows for quote in re.findall("`(.+?)`", row)]


def is_of(quote, message):
    """Whether a quote, in which "…" stands for anything, is of the beginning of a message."""
    pattern = ".*".join(map(re.escape, quote.split("…")))
    return re.match(pattern, message, re.DOTALL) is not None


def known_text(message):
    """What a template says before "Received", without what is filled in."""
    return message.split("Received")[0].replace(GAP, "").strip(" .:,;")


@pytest.mark.parametrize("page", PAGES)
def test_every_quoted_message_is_raised(page):
    messages = raised_messages()
    unknown = [q for q in quoted_messages(page) if not any(is_of(q, m) for m in messages)]
    assert unknown == []


def test_every_message_is_quoted():
    quotes = quoted_messages(PAGES[0])
    exact = [quote for quote in quotes if len(known_text(quote.replace("…", GAP))) >= SHORT]
    missing = [
        f"{where}: {message.replace(GAP, '…')}"
        for message, where in raised_messages().items()
        if known_text(message)
        and not message.startswith(ABOUT_A_FLAG)
        and not any(
            is_of(quote, message)
            for quote in (exact if len(known_text(message)) >= SHORT else quotes)
        )
    ]
    assert missing == []


def test_both_languages_quote_the_same():
    english, korean = map(quoted_messages, PAGES)
    assert english == korean and len(english) > 200


def test_how_quotes_are_compared():
    assert is_of("… must hold …", f"{GAP} must hold a question")
    assert not is_of("… must hold a token", f"{GAP} must hold a question")
    assert not is_of("must hold", f"{GAP} must hold a question")  # not its beginning
    assert known_text(f"{GAP}. Received: {GAP} with {GAP}") == ""
