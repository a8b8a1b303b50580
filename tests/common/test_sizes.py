"""Functions stay small enough to be read in one sitting; circles and floors: `test_layering`."""

import ast
import collections
import re

from tests.support.paths import FILES, source_of

LINES_OF_A_FUNCTION = 80  # its docstring not counted

CODE = [path for path in FILES if path.parts[0] != "tests"]
TESTS = [path for path in FILES if path.parts[0] == "tests"]
IMPORT_OF_A_TEST = re.compile(r"^\s*(from|import) test_", re.MULTILINE)


def too_large(source):
    """Yields a line for each function of a file that is larger than it may be."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node, clean=False) is not None:
            lines -= node.body[0].end_lineno - node.body[0].lineno + 1
        if lines > LINES_OF_A_FUNCTION:
            yield f"{node.name}: {lines} lines of code"


def test_functions_are_short():
    assert [(str(path), line) for path in CODE for line in too_large(source_of(path))] == []


def test_test_files_import_no_other():
    """What several test files need is in tests/support."""
    assert [path for path in TESTS if IMPORT_OF_A_TEST.search(source_of(path))] == []


def test_test_files_have_names_of_their_own():
    """pytest imports them by name alone: only what they share is a package."""
    counts = collections.Counter(path.name for path in TESTS if path.parts[1] != "data")
    repeated = {name for name, count in counts.items() if count > 1}
    assert repeated <= {"conftest.py", "__init__.py"}


def test_what_is_too_large():
    docstring = '    """' + "a\n" * 100 + '    """\n'
    body = "    x = 1\n"
    assert list(too_large(f"def f():\n{docstring}{body * 79}")) == []
    assert list(too_large(f"def f():\n{docstring}{body * 80}")) == ["f: 81 lines of code"]
