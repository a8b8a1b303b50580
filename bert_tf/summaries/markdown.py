"""Writes Markdown for TensorBoard's text page."""

from collections.abc import Iterable, Sequence
from typing import Any

# Characters with a meaning in Markdown or HTML.
MARKUP = set("\\`*_{}[]()<>#+-.!|&~$:")


def escape_markdown(text: Any) -> str:
    """The text escaped so that Markdown shows it literally, in tables too."""
    text = " ".join(str(text).split())
    return "".join(f"&#{ord(c)};" if c in MARKUP else c for c in text)


def as_markdown_table(
    rows: Iterable[Iterable[Any]], header: Sequence[str] = ("name", "value")
) -> str:
    """A table in Markdown, from rows of cells and the names of the columns."""
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])
