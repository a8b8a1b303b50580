"""Writes the tutorials as Jupyter notebooks without outputs."""

import json

from tutorial_pages.texts import LANGUAGES, SUFFIXES, TUTORIALS, cells

# nbformat 4.5; any Python 3 kernel runs the notebook.
_HEAD = {
    "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}
_CODE = {"cell_type": "code", "execution_count": None, "outputs": []}
# The kind of a cell -> its Jupyter fields, and the prefix of its source.
_CELLS = {
    "markdown": ({"cell_type": "markdown"}, ""),
    "python": (_CODE, ""),
    "bash": (_CODE, "%%bash\n"),
}


def notebook(path, language):
    """Returns a tutorial's notebook as a dictionary in nbformat's form."""
    found = [
        {
            **_CELLS[cell.kind][0],
            "id": f"cell-{number}",
            "metadata": {},
            "source": (_CELLS[cell.kind][1] + cell.source).splitlines(keepends=True),
        }
        for number, cell in enumerate(cells(path, language))
    ]
    return {"cells": found, **_HEAD}


def notebook_text(path, language):
    """Returns the text of a tutorial's notebook file."""
    return json.dumps(notebook(path, language), ensure_ascii=False, indent=1) + "\n"


def notebook_file(path, language):
    """Returns the path of a tutorial's notebook."""
    return TUTORIALS / f"{path.stem}{SUFFIXES[language]}.ipynb"


def write_notebooks(path):
    """Writes a tutorial's notebooks in both languages."""
    for language in LANGUAGES:
        text = notebook_text(path, language)
        notebook_file(path, language).write_text(text, encoding="utf-8")
