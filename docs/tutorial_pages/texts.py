"""Reads the source texts of the tutorials, in which both languages share the code.

A text in docs/tutorials/texts is a sequence of parts: paragraphs in Korean after a line "[ko]", the
same in English after "[en]", and code cells, fenced by "```python" or "```bash" and "```". The code
of the two languages therefore cannot diverge, and both are edited in one place. A command that is
shown but not run is fenced by "```sh".
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
TEXTS = sorted((TUTORIALS / "texts").glob("*.md"))

LANGUAGES = ("ko", "en")
# The suffix of a language's file names, before the extension.
SUFFIXES = {"ko": ".ko", "en": ""}

_BEGINNING = re.compile(r"^(?:\[(ko|en)\]|```(python|bash))$")
_LETTERS = {"ko": "k", "en": "e", "python": "c", "bash": "c"}


class Cell(NamedTuple):
    """Holds a cell of a notebook."""

    kind: str  # "markdown", "python" or "bash"
    source: str


def cells(path, language):
    """Returns the cells of a tutorial in a language.

    Raises:
        ValueError: a line belongs to no part, or a Korean part is not followed by an English one.
    """
    parts = _parts(path)
    order = "".join(_LETTERS[kind] for kind, _ in parts)
    if not re.fullmatch("ke(?:ke|c)*", order):
        raise ValueError(f"every [ko] must be followed by its [en]. Received: {path.name}: {order}")
    kinds = {language: "markdown", "python": "python", "bash": "bash"}
    return [Cell(kinds[kind], source) for kind, source in parts if kind in kinds]


def _parts(path):
    """Returns ("ko", "en", "python" or "bash", text) for every part."""
    found = []  # (kind, lines)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        begun = _BEGINNING.match(line)
        if begun:
            found.append((begun[1] or begun[2], []))
        elif found and found[-1][0] in ("python", "bash") and line == "```":
            found.append((None, []))
        elif not found or (found[-1][0] is None and line):
            raise ValueError(f"a line must belong to a part. Received: {path.name}:{number}")
        else:
            found[-1][1].append(line)
    return [(kind, "\n".join(lines).strip()) for kind, lines in found if kind]
