"""Writes Markdown for TensorBoard's text page."""

# Characters with a meaning in Markdown or HTML.
MARKUP = set("\\`*_{}[]()<>#+-.!|&~$:")


def escape_markdown(text):
    """The text escaped so that Markdown shows it literally, in tables too."""
    text = " ".join(str(text).split())
    return "".join(f"&#{ord(c)};" if c in MARKUP else c for c in text)


def as_markdown_table(values, header=("name", "value")):
    """A dict as a Markdown table of two columns, which `header` names."""
    rows = [header, *values.items()]
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---|---|", *lines[1:]])
