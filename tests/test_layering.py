"""The packages form layers: an import points down the list, never up."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the top down: a package may import those after it.
LAYERS = (
    "run_scripts",
    "finetuning",
    "albert_tf",
    "bert_tf",
    "create_pretraining_data",
    "tokenization",
)
# Beside the packages, not below them: nothing in a package may import these.
OUTSIDE = ("tests", "benchmarks", "build_vocab", "extract_features", "run_pretraining", "setup")

FLAG_LIBRARY, FLAG_PACKAGE = "absl", "run_scripts"

MODULES = sorted(
    path.relative_to(ROOT) for layer in LAYERS for path in (ROOT / layer).rglob("*.py")
)
FILES = sorted(
    [
        *MODULES,
        *(path.relative_to(ROOT) for path in ROOT.glob("*.py")),
        *(path.relative_to(ROOT) for name in OUTSIDE for path in (ROOT / name).rglob("*.py")),
    ]
)


def imported_names(source):
    """(line, module) of every import, whether at the top, in a function, or by a string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module
        elif isinstance(node, ast.ImportFrom):  # "from .." would leave a package of one level
            yield node.lineno, "." * node.level + (node.module or "")
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            # What importlib.import_module is given.
            and re.fullmatch(rf"({'|'.join((*LAYERS, *OUTSIDE))})(\.[a-z_]+)+", node.value)
        ):
            yield node.lineno, node.value


def forbidden_imports(source, package):
    """The imports of a module of `package` that point up, or at flags from below run_scripts."""
    allowed = LAYERS[LAYERS.index(package) :]
    problems = []
    for line, name in imported_names(source):
        top = name.split(".")[0]
        upward = top in (*LAYERS, *OUTSIDE) and top not in allowed
        if upward or name.startswith("..") or (top == FLAG_LIBRARY and package != FLAG_PACKAGE):
            problems.append((line, name))
    return problems


def one_sentence(line):
    """Whether a docstring's first line is a sentence, and only one."""
    return bool(line) and line[-1] in ".?" and not re.search(r"[.!?]\s", line)


def test_there_are_modules_of_every_layer():
    found = {path.parts[0] for path in MODULES}
    assert found == set(LAYERS)
    assert len(MODULES) > 30


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_down(path):
    source = (ROOT / path).read_text(encoding="utf-8")
    assert forbidden_imports(source, path.parts[0]) == []


UPWARD = {
    "import albert_tf": "albert_tf",
    "import os, run_scripts.cli as cli": "run_scripts.cli",
    "from albert_tf.config import AlbertConfig": "albert_tf.config",
    "def f():\n    from finetuning import squad": "finetuning",
    "class C:\n    def f(self):\n        import run_scripts.cli": "run_scripts.cli",
    "if True:\n    try:\n        import albert_tf.model\n    except ImportError:\n        pass": (
        "albert_tf.model"
    ),
    "HOMES = {'AlbertModel': 'albert_tf.model'}": "albert_tf.model",
    "from tests.tiny import tiny_model": "tests.tiny",
    "from ..albert_tf import model": "..albert_tf",
    "from absl import flags": "absl",
    "def f():\n    import absl.flags": "absl.flags",
}


@pytest.mark.parametrize("statement", UPWARD)
def test_inserted_upward_import_is_noticed(statement):
    path = ROOT / "bert_tf" / "model.py"
    source = f"{path.read_text(encoding='utf-8')}\n{statement}\n"
    assert [name for _, name in forbidden_imports(source, "bert_tf")] == [UPWARD[statement]]


def test_downward_imports_are_no_problem():
    source = (
        '"""Uses albert_tf in a sentence."""\n'
        "import numpy, tokenization\nfrom . import layers\nfrom bert_tf.layers import dense\n"
        "from create_pretraining_data.record_format import RecordFormat\nname = 'albert_tf'\n"
    )
    assert forbidden_imports(source, "bert_tf") == []
    assert forbidden_imports("from absl import flags\nimport albert_tf", "run_scripts") == []


@pytest.mark.parametrize("path", FILES, ids=str)
def test_first_docstring_line_is_one_sentence(path):
    docstring = ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    assert docstring, "no docstring"
    assert one_sentence(docstring.splitlines()[0])


def test_what_is_one_sentence():
    for line in ("Reads a file.", "As bert/modeling.py.", "Ratios of 0.5 to 1.", "Is it?"):
        assert one_sentence(line)
    for line in ("", "Reads a file", "Reads a file. Writes it.", "Reads a file, then"):
        assert not one_sentence(line)


LIGHT = (
    "tokenization",
    "bert_tf.config",
    "bert_tf.cluster",
    "bert_tf.memory",
    "bert_tf.stopping",
    "bert_tf.training_folder",
    "albert_tf.config",
    "create_pretraining_data.pairs",
    "create_pretraining_data.record_format",
    "create_pretraining_data.tfrecord",
    "run_scripts.pretrain",
    "run_scripts.create_data",
    "run_scripts.build_vocab",
    "run_scripts.fill_masks",
    "run_scripts.extract_features",
    "run_scripts.race",
    "run_scripts.squad",
    "finetuning.answer_scores",
    "finetuning.answers",
    "finetuning.choice_data",
    "run_scripts.benchmark_plan",
    "run_scripts.benchmark_table",
    "finetuning.feature_files",
    "finetuning.inputs",
    "finetuning.metrics",
    "finetuning.ner_features",
    "finetuning.ner_files",
    "finetuning.question_cache",
    "finetuning.question_data",
    "finetuning.readers",
    "finetuning.tasks",
    "finetuning.windows",
    "tokenization.comparison",
    "tokenization.learn",
)


def heavy_imports(module):
    """Which of TensorFlow and Keras a fresh interpreter holds after importing `module`."""
    code = f"import sys, {module}; print(sorted({{'keras', 'tensorflow'}} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


@pytest.mark.parametrize("module", LIGHT)
def test_import_leaves_tensorflow_alone(module):
    assert heavy_imports(module) == "[]"


def test_import_of_tensorflow_is_noticed():
    assert heavy_imports("bert_tf.layers") == "['keras', 'tensorflow']"
