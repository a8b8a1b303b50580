"""Writes Markdown for TensorBoard's text page."""

from collections.abc import Iterable, Sequence
from typing import Any

# Characters with a meaning in Markdown or HTML.
MARKUP = set("\\`*_{}[]()<>#+-.!|&~$:")


def escape_markdown(text: Any) -> str:
    """Escapes a text so that Markdown shows it literally, also in tables."""
    text = " ".join(str(text).split())
    return "".join(f"&#{ord(c)};" if c in MARKUP else c for c in text)


def as_markdown_table(
    rows: Iterable[Iterable[Any]], header: Sequence[str] = ("name", "value")
) -> str:
    """Formats rows of cells, and the names of the columns, as a Markdown table."""
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])
