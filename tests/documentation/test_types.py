"""The public names have types: each is annotated, and mypy finds each where users import it."""

import ast

import pytest
from generated_pages import reference

from tests.support.libraries import needs
from tests.support.paths import ROOT, WHEEL, run_python

USE = ROOT / "tests" / "documentation" / "typed_use.py"

PUBLIC = {name for package in reference.PACKAGES for name in reference.homes(package)}
PUBLIC |= {
    name
    for module, names in reference.MODULES.items()
    if module.startswith("korean_bert.")
    for name in names
}


def incomplete(function):
    """The arguments of a function without a type, and "return"."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    names = [a.arg for a in every if a.annotation is None and a.arg not in ("self", "cls")]
    return names + (["return"] if function.returns is None else [])


def functions(node, prefix=""):
    """(name, definition) of functions and methods without a leading underscore, or with two."""
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            is_special = child.name.startswith("__")
            if child.name.startswith("_") and not is_special:
                continue
            if isinstance(child, ast.FunctionDef):
                yield prefix + child.name, child
            else:
                yield from functions(child, f"{prefix}{child.name}.")


@pytest.mark.parametrize("package", WHEEL)
def test_functions_that_others_may_call_are_annotated(package):
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        for name, definition in functions(ast.parse(path.read_text("utf-8"))):
            if missing := incomplete(definition):
                found[f"{path.relative_to(ROOT)}: {name}"] = missing
    assert found == {}


def test_missing_annotations_are_noticed():
    (function,) = ast.parse("def f(self, a, *b: int, c: int, **d): pass").body
    assert incomplete(function) == ["a", "d", "return"]
    text = "def f(): pass\ndef _g(): pass\nclass C:\n  def __init__(self): pass\n  def _h(): pass"
    assert [name for name, _ in functions(ast.parse(text))] == ["f", "C.__init__"]


def test_every_public_name_is_imported():
    imports = [n for n in ast.parse(USE.read_text("utf-8")).body if isinstance(n, ast.ImportFrom)]
    assert {alias.name for node in imports for alias in node.names} == PUBLIC


@pytest.mark.slow
@needs("mypy", extra="test")
def test_mypy(tmp_path):
    """Accepts that use, and refuses a wrong one."""
    wrong = tmp_path / "wrong.py"
    text = USE.read_text(encoding="utf-8")
    wrong.write_text(text.replace("pieces: list[str] = tok", "pieces: list[int] = tok"), "utf-8")
    for arguments, status in (([], 0), ([wrong], 1)):
        done = run_python("-m", "mypy", f"--cache-dir={tmp_path}/cache", *arguments)
        assert done.returncode == status, done.stdout + done.stderr
