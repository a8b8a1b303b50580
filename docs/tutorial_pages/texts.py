"""Reads the texts that the tutorials are written in: both languages, with the code that they share.

A text in docs/tutorials/texts is a sequence of paragraphs in Korean, begun by a line "[ko]", the
same in English, begun by "[en]", and cells of code, fenced by "```python" or "```bash" and "```".
So the two languages cannot drift apart in their code, and stand beside each other where they are
edited. A command that is shown and not run is fenced by "```sh".
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
TEXTS = sorted((TUTORIALS / "texts").glob("*.md"))

LANGUAGES = ("ko", "en")
# What a language's files end in, before the dot of their kind.
SUFFIXES = {"ko": ".ko", "en": ""}

_BEGINNING = re.compile(r"^(?:\[(ko|en)\]|```(python|bash))$")
_LETTERS = {"ko": "k", "en": "e", "python": "c", "bash": "c"}


class Cell(NamedTuple):
    """A cell of a notebook."""

    kind: str  # "markdown", "python" or "bash"
    source: str


def cells(path, language):
    """The cells of a tutorial in a language.

    Raises:
        ValueError: a line belongs to no part, or a part in Korean is not followed by one in
            English.
    """
    parts = _parts(path)
    order = "".join(_LETTERS[kind] for kind, _ in parts)
    if not re.fullmatch("ke(?:ke|c)*", order):
        raise ValueError(f"every [ko] must be followed by its [en]. Received: {path.name}: {order}")
    kinds = {language: "markdown", "python": "python", "bash": "bash"}
    return [Cell(kinds[kind], source) for kind, source in parts if kind in kinds]


def _parts(path):
    """("ko", "en", "python" or "bash", text) of every part."""
    found = []  # of kind, lines
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
