"""The console sessions of the pages, written again with what their lines print.

    python -m tests.support.console_blocks README*.md docs/python*.md

It brings the pages' printed output up to date, for example with a new model in reference_model/.
"""

import contextlib
import doctest
import io
import re
import sys
from pathlib import Path

SESSION = re.compile(r"(```pycon\n)(.*?)(```\n)", re.DOTALL)


def sources(text):
    """The lines of code of every session on a page."""
    parser = doctest.DocTestParser()
    return [
        example.source
        for match in SESSION.finditer(text)
        for example in parser.get_examples(match[2])
    ]


def with_outputs(text):
    """A page with the output that the lines of its sessions print now."""
    return SESSION.sub(lambda match: match[1] + _run(match[2]) + match[3], text)


def _run(session):
    names, shown = {}, []
    for example in doctest.DocTestParser().get_examples(session):
        first, *more = example.source.splitlines()
        shown += [f">>> {first}\n", *(f"... {line}\n" for line in more)]
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(example.source, "README", "single"), names)
        shown.append(output.getvalue())
    return "".join(shown)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(with_outputs(page.read_text(encoding="utf-8")), encoding="utf-8")
