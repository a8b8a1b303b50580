"""Writes Markdown for TensorBoard's text page."""

# What Markdown or HTML would take for more than itself.
MARKUP = set("\\`*_{}[]()<>#+-.!|&~$:")


def escape_markdown(text):
    """The text such that Markdown shows it as it is, in tables too."""
    text = " ".join(str(text).split())
    return "".join(f"&#{ord(c)};" if c in MARKUP else c for c in text)


def as_markdown_table(values, header=("name", "value")):
    """A table of two columns.

    Args:
        values: a dict; the keys are the first column.
        header: the columns' names.

    Returns:
        Markdown.
    """
    rows = [header, *values.items()]
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---|---|", *lines[1:]])
