"""Writes the tutorials, with the outputs of their cells, as pages of Markdown."""

import base64
import re

from tutorial_pages.alt_texts import ALT_TEXTS
from tutorial_pages.texts import LANGUAGES, ROOT, SUFFIXES, TUTORIALS, cells

PICTURES = TUTORIALS / "pictures"

# The limits within which a page stays readable.
MOST_LINES = 60  # in one cell's output
MOST_BYTES = 100_000  # in a picture

# Language -> the line of links below the title.
_LINKS = {
    "ko": "[English]({name}.md) · [노트북]({name}.ko.ipynb) · [README](../../README.ko.md)",
    "en": "[한국어]({name}.ko.md) · [Notebook]({name}.ipynb) · [README](../../README.md)",
}

# The outputs on a page; no tutorial's own text matches this.
_OUTPUT = r"\n\n(?:```text\n.*?\n```|!\[[^\]]*\]\(pictures/[^)]*\))"
_CELL = re.compile(rf"^```(python|bash)\n(.*?)\n```((?:{_OUTPUT})*)", re.MULTILINE | re.DOTALL)

# A picture in an output, with an alternative text in any language.
_PICTURE = re.compile(r"!\[[^\]]*\]\(pictures/([^)]*)\.png\)")

# Colour codes, and text that a terminal would overwrite.
_TERMINAL = re.compile(r"\x1b\[[0-9;]*m|^.*\r(?!\n)", re.MULTILINE)
# TensorFlow's messages about the machine when it is imported.
_LOG = re.compile(
    r"^(?:WARNING: All log messages before absl|To enable the following instructions:"
    r"|[IWE]\d{4} \d\d:).*\n?",
    re.MULTILINE,
)


def page(path, language, outputs):
    """Returns the text of a page.

    Args:
        path: the tutorial's text.
        language: "ko" or "en".
        outputs: the parts of the output of each code cell, as Markdown.
    """
    parts, outputs = [], iter(outputs)
    for cell in cells(path, language):
        if cell.kind == "markdown":
            parts.append(cell.source)
        else:
            shown = (_with_alt_texts(output, language) for output in next(outputs))
            parts += [f"```{cell.kind}\n{cell.source}\n```", *shown]
    title, _, rest = parts[0].partition("\n")
    parts[0] = f"{title}\n\n{_LINKS[language].format(name=path.stem)}\n{rest}"
    return "\n\n".join(parts) + "\n"


def _with_alt_texts(output, language):
    """Adds the alternative texts to the pictures in an output; empty if ALT_TEXTS lacks one."""

    def described(match):
        words = ALT_TEXTS.get(match[1], {}).get(language, "")
        return f"![{words}](pictures/{match[1]}.png)"

    return _PICTURE.sub(described, output)


def page_file(path, language):
    """Returns the path of a tutorial's page."""
    return TUTORIALS / f"{path.stem}{SUFFIXES[language]}.md"


def outputs_in(text):
    """Returns (kind, source) of each code cell on a page, and their outputs for `page`."""
    found = _CELL.findall(text)
    return [cell[:2] for cell in found], [[cell[2][2:]] if cell[2] else [] for cell in found]


def rewrite_pages(path):
    """Rewrites a tutorial's pages with its present text, keeping their outputs.

    Returns:
        True if the code on the pages is the present code; otherwise nothing is written.
    """
    texts = {}
    for language in LANGUAGES:
        file = page_file(path, language)
        old = file.read_text(encoding="utf-8") if file.exists() else ""
        code, outputs = outputs_in(old)
        if code != [tuple(cell) for cell in cells(path, language) if cell.kind != "markdown"]:
            return False
        texts[file] = page(path, language, outputs)
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    return True


def write_pages(path, outputs):
    """Writes a tutorial's pages and pictures.

    Args:
        path: the tutorial's text.
        outputs: the outputs of each code cell, from `execution.execute`.

    Raises:
        ValueError: a cell prints too many lines, or a picture is too large.
    """
    pictures = []
    rendered = [_rendered(cell, path.stem, pictures) for cell in outputs]
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob(f"{path.stem}-*.png"):
        old.unlink()
    for name, content in pictures:
        (PICTURES / name).write_bytes(content)
    for language in LANGUAGES:
        text = page(path, language, rendered)
        page_file(path, language).write_text(text, encoding="utf-8")


def _rendered(outputs, name, pictures):
    """Returns one cell's outputs as Markdown; adds (file name, bytes) to the pictures."""
    parts, text = [], ""
    for output in outputs:
        data = output.get("data", {})
        if "image/png" in data:
            parts, text = [*parts, *_block(text)], ""
            content = base64.b64decode(data["image/png"])
            if len(content) > MOST_BYTES:
                raise ValueError(
                    f"a picture must have at most {MOST_BYTES} bytes. Received: {len(content)}"
                )
            pictures.append((f"{name}-{len(pictures) + 1}.png", content))
            parts.append(f"![](pictures/{pictures[-1][0]})")
        else:
            text += output.get("text", "") or data.get("text/plain", "") + "\n"
    return [*parts, *_block(text)]


def _block(text):
    """Returns a list with the printed text as a Markdown block; empty if there is none."""
    text = _LOG.sub("", _TERMINAL.sub("", text)).replace(f"{ROOT}/", "").strip("\n")
    lines = [line.rstrip() for line in text.splitlines()]
    if len(lines) > MOST_LINES:
        raise ValueError(
            f"a cell must print at most {MOST_LINES} lines. Received: {len(lines)}:\n{text}"
        )
    return ["```text\n" + "\n".join(lines) + "\n```"] if any(lines) else []
