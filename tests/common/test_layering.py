"""The packages form layers: an import points down the list, never up."""

import ast
import re

import pytest

from tests.support.paths import (
    FILES,
    LAYERS,
    MODULES,
    OUTSIDE,
    ROOT,
    WHEEL,
    heavy_imports,
    is_for_types,
    run_python,
    source_of,
)

# From the top down, inside a package: a folder, or a file named here, may import those after it;
# "" is the package's other files. The model may import nothing but the packages named here.
FLOORS = {
    "benchmarks": (
        "gpu", "gpu_step", "sentence_order", "vocabularies", "speed", "quality", "serving",
        "reference", "",
    ),
    "run_scripts": (
        "", "tools", "downstream", "session", "announcement", "job", "given_model", "flags",
    ),
    "model_formats": (
        "huggingface", "saved_model", "runtimes", "adaptation", "keras_file", "load_folder", "",
        "model_folder", "difference_files", "folder_tokenizer", "folder_weights", "training_record",
        "pretraining_objectives", "task_records", "config_file", "encoders", "transformers_files",
    ),
    "korean_bert": ("__init__", "loading", "model", "", "arguments", "results", "errors"),
    "explorer": ("server", "application", "answers", "", "errors"),
    "finetuning": (
        "tasks", "classification", "multiple_choice", "ner", "question_answering", "similarity",
        "serving", "",
    ),
    "bert_tf": ("training", "summaries", "input", ""),
    "create_pretraining_data": ("engine", "instances", "records", ""),
    "tokenization": ("vocab_learning", ""),
}  # fmt: skip
# Folders that do not import each other.
SEPARATE_ROOMS = {
    "finetuning": ("classification", "multiple_choice", "ner", "question_answering", "similarity")
}
MODEL_IMPORTS = ("bert_common", "bert_tf")

FLAG_LIBRARY, FLAG_PACKAGE = "absl", "run_scripts"


def walk_what_runs(node):
    """As `ast.walk`, without what is imported for types alone."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not is_for_types(child):
            yield from walk_what_runs(child)


def imported_names(source):
    """(line, module) of every import, whether at the top, in a function, or by a string."""
    for node in walk_what_runs(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):  # "from .." would leave a package of one level
            yield node.lineno, "." * node.level + (node.module or "")
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            # What importlib.import_module is given, not the name of a file.
            and re.fullmatch(rf"({'|'.join((*LAYERS, *OUTSIDE))})(\.[a-z_]+)+", node.value)
            and not node.value.endswith(".py")
        ):
            yield node.lineno, node.value


def floor_of(name, package):
    """The folder inside a package that a module or a file's folder belongs to; "" for its own."""
    below = name.split(".")[1:2]
    return below[0] if below and below[0] in FLOORS.get(package, ()) else ""


def forbidden_imports(source, folder):
    """The imports of a module that point up, or at flags from below run_scripts.

    Args:
        source: the module's text.
        folder: where it is, for example "bert_tf.training"; or the module, if `FLOORS` names it.
    """
    package = folder.split(".")[0]
    floors, floor = FLOORS.get(package, ("",)), floor_of(folder, package)
    allowed = LAYERS[LAYERS.index(package) :]
    if folder == "bert_tf":
        allowed = MODEL_IMPORTS
    problems = []
    for line, name in imported_names(source):
        top = name.split(".")[0]
        upward = top in (*LAYERS, *OUTSIDE) and top not in allowed
        if top == package:
            other = floor_of(name, package)
            upward |= floors.index(other) < floors.index(floor)
            rooms = SEPARATE_ROOMS.get(package, ())
            upward |= other != floor and other in rooms and floor in rooms
        if upward or name.startswith("..") or (top == FLAG_LIBRARY and package != FLAG_PACKAGE):
            problems.append((line, name))
    return problems


def one_sentence(line):
    """Whether a docstring's first line is a sentence, and only one."""
    return bool(line) and line[-1] in ".?" and not re.search(r"[.!?]\s", line)


def test_every_package_is_a_layer():
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == {*LAYERS, "tests"}
    assert {path.parts[0] for path in MODULES} == set(LAYERS)


def first_line(path):
    """The first line of a file's docstring, "" if it has none."""
    return (ast.get_docstring(ast.parse(source_of(path))) or "").partition("\n")[0]


@pytest.mark.parametrize("path", [path for path in FILES if path.stem == "__init__"], ids=str)
def test_packages_name_the_file_to_open_first(path):
    match = re.search(r"; open (\S+) first(?:, then (.+))?\.$", first_line(path))
    names = [match[1], *re.split(", | and ", match[2] or "")]
    assert all((ROOT / path.parent / f"{name}.py").exists() for name in names if name)


def place_of(path):
    """Where a module is, as `forbidden_imports` takes it."""
    is_floor = len(path.parts) == 2 and path.stem in FLOORS.get(path.parts[0], ())
    return f"{path.parts[0]}.{path.stem}" if is_floor else ".".join(path.parts[:-1])


def test_imports_point_down():
    found = {str(path): forbidden_imports(source_of(path), place_of(path)) for path in MODULES}
    assert {path: imports for path, imports in found.items() if imports} == {}


# Where a module is, its text, and what it imports against the rules.
EXAMPLES = (
    ("bert_tf", "try:\n    from albert_tf import a\nexcept ImportError:\n    pass", ["albert_tf"]),
    ("bert_tf", "class C:\n    def f(self):\n        import os, run_scripts.a", ["run_scripts.a"]),
    ("bert_tf", "HOMES = {'AlbertModel': 'albert_tf.model'}", ["albert_tf.model"]),
    ("bert_tf", "from ..albert_tf import model", ["..albert_tf"]),
    ("bert_tf", "from tests.support.paths import ROOT", ["tests.support.paths"]),
    ("bert_tf", "import absl.flags", ["absl.flags"]),
    ("bert_tf", "import bert_common.errors, tokenization", ["tokenization"]),
    ("bert_tf", "import bert_tf.input.pipeline", ["bert_tf.input.pipeline"]),
    ("bert_tf", "if TYPE_CHECKING:\n    import albert_tf", []),
    ("bert_tf.training", "import numpy, tokenization\nfrom . import a\nname = 'albert_tf'", []),
    ("bert_tf.training", "from bert_tf.layers import dense\nFILE = 'explore.py'", []),
    ("bert_tf.input", "from bert_tf.training.step import A", ["bert_tf.training.step"]),
    ("finetuning.classification", "import finetuning.ner.head", ["finetuning.ner.head"]),
    ("model_formats.encoders", "import model_formats.keras_file", ["model_formats.keras_file"]),
    ("run_scripts", "from absl import flags\nimport albert_tf", []),
    ("benchmarks.speed", "import run_scripts.pretrain, tokenization", []),
    *((package, "from benchmarks import common", ["benchmarks"]) for package in WHEEL),
)


@pytest.mark.parametrize("folder, source, found", EXAMPLES)
def test_forbidden_imports_are_noticed(folder, source, found):
    assert [name for _, name in forbidden_imports(source, folder)] == found


def test_the_wheel_has_all_but_the_benchmarks():
    code = (
        "import setuptools; from distutils.core import run_setup; "
        "print(*run_setup('setup.py', stop_after='init').packages)"
    )
    found = run_python("-c", code, check=True).stdout.split()
    packages = {name.split(".")[0] for name in found}
    assert packages == {*WHEEL, "reference_model", "reference_vectors"}


# Dotted name -> path.
MODULE_PATHS = {
    ".".join(path.with_suffix("").parts): path for path in MODULES if path.stem != "__init__"
}


def imported_modules(path):
    """The project's modules that a module imports, wherever in it."""
    names = set()
    for node in walk_what_runs(ast.parse(source_of(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {MODULE_PATHS[name] for name in names & MODULE_PATHS.keys()}


def find_circle(imports):
    """Modules that import one another in a circle; empty if there are none."""
    done = set()

    def visit(module, way):
        if module in way:
            return way[way.index(module) :]
        if module in done:
            return ()
        found = next(filter(None, (visit(n, (*way, module)) for n in imports[module])), ())
        done.add(module)
        return found

    return next(filter(None, (visit(module, ()) for module in imports)), ())


def test_no_import_circle():
    assert find_circle({path: imported_modules(path) for path in MODULES}) == ()
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ("b", "c")


def test_first_docstring_line_is_one_sentence():
    found = {str(path): first_line(path) for path in FILES}
    assert {path: line for path, line in found.items() if not one_sentence(line)} == {}


# With all that these import.
LIGHT = (
    "run_scripts.programs",
    "korean_bert:(korean_bert.KoreanTokenizer, korean_bert.AlbertConfig, korean_bert.load_model)",
    "explorer.answers", "bert_tf.training.interruptions.signals",
    "bert_tf.training.interruptions.output_folder",
    "create_pretraining_data.instances.mask_processes", "finetuning.question_answering.answers",
    "tokenization.vocab_learning.learn", "run_scripts.pretrain", "run_scripts.create_data",
    "run_scripts.build_vocab", "run_scripts.plan", "run_scripts.tools.explore",
    "run_scripts.tools.fill_masks", "run_scripts.conversion.adapt_checkpoint",
    "run_scripts.conversion.export_model", "run_scripts.extract_features", "run_scripts.race",
    "run_scripts.squad", "run_scripts.similarity", "run_scripts.benchmark",
    "benchmarks.reference.program",
)  # fmt: skip


def test_imports_leave_tensorflow_alone():
    assert heavy_imports(*LIGHT) == []


@pytest.mark.slow
def test_import_of_tensorflow_is_noticed():
    found = heavy_imports("bert_tf.config", "bert_tf.layers", "tokenization")
    assert found == ["bert_tf.layers", "keras", "tensorflow"]
