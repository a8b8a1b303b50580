"""The project's folders as tests see them: Python files, test data, a Python that runs there."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
TEST_DATA = TESTS / "data"

# For programs that tests start, which import what tests import.
PYTHONPATH = str(ROOT)

# Tests that need this larger data are skipped where it is absent; nothing essential is tested
# only with it.
SHARED = Path(os.environ.get("SHARED_DATA", ROOT.parent / "shared"))


# From the top down: a package may import those after it. The benchmarks are not in the wheel.
LAYERS = (
    "benchmarks", "run_scripts", "explorer", "korean_bert", "model_formats", "finetuning",
    "albert_tf", "electra_tf", "bert_tf", "create_pretraining_data", "tokenization", "bert_common",
)  # fmt: skip
# Beside the packages, not below them: nothing in a package may import these.
OUTSIDE = (
    "tests", "docs", "requirements", "adapt_checkpoint", "build_vocab", "explore", "export_model",
    "extract_features", "run_pretraining", "setup",
)  # fmt: skip

WHEEL = LAYERS[1:]


def _files_in(*folders, pattern="**/*.py"):
    return sorted(
        path.relative_to(ROOT) for name in folders for path in (ROOT / name).glob(pattern)
    )


MODULES = _files_in(*LAYERS)
FILES = sorted([*MODULES, *_files_in("", pattern="*.py"), *_files_in(*OUTSIDE)])


def source_of(path):
    """The text of a file of `FILES`."""
    return (ROOT / path).read_text(encoding="utf-8")


def declared(name):
    """The value of a name in setup.py."""
    for node in ast.parse(source_of("setup.py")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise NameError(name)


def is_for_types(node):
    """Whether a statement is an `if TYPE_CHECKING:`, which never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def environment_with(**variables):
    """The environment, in which Python finds the project, with these variables."""
    paths = os.pathsep.join([PYTHONPATH, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": paths, **variables}


def run_python(*words, cwd=ROOT, **options):
    """Runs Python in the root, or elsewhere; what `subprocess.run` returns, with text."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, **options)


def printed_by(*words, cwd=ROOT, timeout=None, **environment):
    """What Python prints, which finds the project and must end well."""
    done = run_python(*words, cwd=cwd, env=environment_with(**environment), timeout=timeout)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


# Imports modules one after the other, until TensorFlow or Keras is there; says after which it is.
IMPORTS = """
import importlib, sys
for module in sys.argv[1:]:
    name, _, expression = module.partition(":")
    importlib.import_module(name)
    eval(expression or "None", {name: sys.modules[name]})
    if heavy := sorted({"keras", "tensorflow"} & set(sys.modules)):
        print(module, *heavy)
        break
"""


def heavy_imports(*modules):
    """The first module after whose import a fresh interpreter has TensorFlow or Keras, and which.

    Empty if none brings them in. "module:expression" is imported, and the expression evaluated.
    """
    return printed_by("-c", IMPORTS, *modules).split()
