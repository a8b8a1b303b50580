"""The page about error messages has a row for each message of the code, in both languages."""

import ast
import functools
import re

import pytest

from tests.support.paths import MODULES, ROOT, WHEEL
from tests.support.readmes import DOCS

PAGES = ("troubleshooting.md", "troubleshooting.ko.md")
ERRORS = ("InputError", "DamagedCheckpoint", "TooManyPiecesError")

# Stands in a template for what is filled in.
GAP = "\0"

# What stands in the page's quotes for a gap.
PLACEHOLDER = re.compile(r"…|\b(?:FILE|FOLDER|FLAG|NAME|N)\b")

# A template that says less than this many characters of its own fits too many messages.
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


def is_raised(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS and node.args


def code_templates():
    """Of each error's message and of every other text of the code: template -> where it is."""
    raised, texts = {}, {}
    for path in (path for path in MODULES if path.parts[0] in WHEEL):
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if is_raised(node):
                raised[template(node.args[0])] = f"{path}:{node.lineno}"
            elif isinstance(node, ast.JoinedStr | ast.Constant):
                texts[template(node)] = f"{path}:{node.lineno}"
    return raised, texts


def requirement(message):
    """What a message says must hold: all that is before what was received."""
    return message.split("Received:")[0].rstrip(" .")


def known_text(message):
    """What a template's requirement says itself, without what is filled in."""
    return requirement(message).replace(GAP, "").strip(" .:,;")


@functools.cache
def filled(text):
    """The pattern of what a template becomes once its gaps are filled."""
    return re.compile(".+".join(map(re.escape, text.split(GAP))), re.DOTALL)


def matches(quote, templates):
    """The templates that a quote is of: those that say most of the words that it has.

    A quote is a whole requirement, or a whole message, with its gaps filled. One that ends in " …"
    may also be the beginning of a message, in which placeholders alone stand for gaps.
    """
    part = str if "Received:" in quote else requirement
    fitting = [t for t in templates if filled(part(t)).fullmatch(quote)]
    most = max((len(known_text(t)) for t in fitting), default=0)
    said = PLACEHOLDER.split(quote.removesuffix(" …"))
    if quote.endswith(" …") and len("".join(said).strip(" .:,;")) > most:
        begun = re.compile(".*".join(map(re.escape, said)), re.DOTALL)
        if any(begun.match(t) for t in templates):
            return [t for t in templates if begun.match(t)]
    return [t for t in fitting if len(known_text(t)) == most]


def first_cells(page):
    """The first cell of each row of a page's tables, without their heads."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^\| (`.*?) \| ", text, re.MULTILINE)


def quotes(page):
    return [cell.strip("`") for cell in first_cells(page)]


@pytest.mark.parametrize("page", PAGES)
def test_a_row_has_one_message(page):
    assert [cell for cell in first_cells(page) if not re.fullmatch("`[^`]+`", cell)] == []
    assert len(set(quotes(page))) == len(quotes(page)) > 400


def test_every_row_is_of_a_message_and_every_message_has_a_row():
    raised, texts = code_templates()
    messages = [message for message in raised if known_text(message)]
    # Some requirements are handed over to the function that raises.
    others = [x for x in texts if re.search(r" must | needs ", x) and len(known_text(x)) >= SHORT]
    shown, unknown = set(), []
    for quote in quotes(PAGES[0]):
        found = matches(quote, messages)
        shown.update(found)
        if not found and not matches(quote, others):
            unknown.append(quote)
    assert unknown == []
    missing = [m for m in messages if m not in shown]
    assert [f"{raised[m]}: {m.replace(GAP, '…')}" for m in missing] == []


def test_both_languages_quote_the_same():
    english, korean = map(quotes, PAGES)
    assert english == korean


def test_how_quotes_are_compared():
    column, question = f"{GAP} must have {GAP}", f"{GAP} must hold a question. Received: none"
    assert matches("FILE must hold a question", [column, question]) == [question]
    assert matches("FILE must hold a token", [column, question]) == []
    assert matches("must hold a question", [question]) == []  # the file's name is missing
    assert matches("FILE must hold a question. Received: none", [question]) == [question]
    assert matches("a.tsv line 3 must have 2 columns", [column, f"{column} columns"]) == [
        f"{column} columns"
    ]
    assert matches("TF_CONFIG must be JSON …", [f"TF_CONFIG must be JSON, such as {GAP}."])
    assert matches("TF_CONFIG must be JSON", [f"TF_CONFIG must be JSON, such as {GAP}."]) == []
    assert matches("must hold …", [question]) == []
    assert known_text(f"{GAP}. Received: {GAP} with {GAP}") == ""
