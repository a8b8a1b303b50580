"""Generates docs/reference.md from the signatures and docstrings of public names.

The modules are parsed rather than imported, so that neither TensorFlow nor the order of imports
matters.
"""

import ast
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Package -> what it is for. Its __init__.py says which names are public and where they are.
PACKAGES = {
    "tokenization": "Tokenizers: from text to the tokens of a vocabulary.",
    "bert_tf": "BERT, its heads, checkpoints and optimizers.",
    "albert_tf": "ALBERT: what differs from BERT.",
    "electra_tf": "ELECTRA: what differs from BERT, and its objective.",
}

# Public names outside these packages: module -> names.
MODULES = {
    "korean_bert.loading": ("load_model",),
    "korean_bert.model": ("Model",),
    "korean_bert.results": (
        "Guess", "Neighbour", "HiddenStates", "Attention", "Classified", "Tagged", "FoundEntity",
        "Answered", "FoundAnswer", "Chosen", "Hit",
    ),
    "finetuning.classification.head": ("SequenceClassifier",),
    "bert_tf.training.step": ("TrainingStep", "StepConfig"),
}  # fmt: skip

HEAD = """# Python reference

[README](../README.md) · [In Python](python.md)

The public names, with the docstrings of the code. Shapes are in brackets: B batch, T tokens,
H hidden, V vocabulary, P predictions. A method that several classes share is described once.

`python docs/generated_pages` makes this page from the code.
"""


def page():
    """Returns the text of the page."""
    lines, described = [HEAD], {}
    for package, about in PACKAGES.items():
        lines += [f"## {package}", "", about, ""]
        for name, module in homes(package).items():
            lines += _entry(name, module, described)
    lines += ["## In other modules", ""]
    for module, names in MODULES.items():
        for name in names:
            lines += _entry(name, module, described, where=True)
    return "\n".join(lines).rstrip() + "\n"


def _tree(module):
    path = ROOT.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def homes(package):
    """Returns {public name: module that defines it} according to a package's `__init__.py`.

    That file either has a table `_HOMES` or imports the names and lists them in `__all__`.
    """
    tree = _tree(package)
    table = _assigned(tree, "_HOMES")
    if table is not None:
        return ast.literal_eval(table)
    imported = _imports(tree)
    found = {}
    for element in _assigned(tree, "__all__").elts:
        if isinstance(element, ast.Starred):  # *module.__all__
            module = imported[element.value.value.id]
            found |= dict.fromkeys(ast.literal_eval(_assigned(_tree(module), "__all__")), module)
        else:
            found[element.value] = imported[element.value].rpartition(".")[0]
    return found


def _assigned(tree, name):
    """Returns the expression assigned to a name at the top level of a module, or None."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return node.value
    return None


def _imports(tree):
    """Returns {name: dotted path} for the imports `from module import name`."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def find(name, module):
    """Returns the definition of a name as (node, tree of its module), following imports.

    Returns (None, None) for a constant or a name from a different library.
    """
    if not ROOT.joinpath(module.split(".")[0]).is_dir():
        return None, None
    tree = _tree(module)
    for node in tree.body:
        if getattr(node, "name", None) == name:
            return node, tree
    home, _, original = _imports(tree).get(name, "").rpartition(".")
    return find(original, home) if home else (None, None)


def _entry(name, module, described, where=False):
    """Returns the lines about a class or function.

    Args:
        name: the name of the class or function.
        module: the module that defines or imports it.
        described: (signature, docstring) of each method described so far -> its class; updated.
        where: whether the title names the module.
    """
    node, tree = find(name, module)
    if node is None:  # a constant, or from a different library
        return []
    title = f"{module}.{name}" if where else name
    lines = [f"### {title}", ""]
    if not isinstance(node, ast.ClassDef):
        return [*lines, *_code([(f"{name}{_arguments(node)}", ast.get_docstring(node))])]
    own = methods(node, tree)
    init = own.pop("__init__", None)
    fields = _fields(node)
    signature = f"{name}{_arguments(init)}" if init else f"{name}({fields})" if fields else name
    about_class = [ast.get_docstring(node), init and ast.get_docstring(init)]
    parts = [(signature, "\n\n".join(filter(None, about_class)))]
    elsewhere = {}
    for method, definition in own.items():
        if not method.startswith("_") and ast.get_docstring(definition):
            called = "" if _is_property(definition) else _arguments(definition)
            about = (f"{method}{called}", ast.get_docstring(definition))
            if about in described:
                elsewhere.setdefault(described[about], []).append(f"`{method}`")
            else:
                described[about] = name
                parts.append((f".{about[0]}", about[1]))
    lines += _code(parts)
    for other, names in elsewhere.items():
        lines += [f"As in `{other}`: {', '.join(names)}.", ""]
    return lines


def methods(node, tree):
    """Returns {name: definition} of a class's methods, including base classes in the project."""
    found = {}
    for base in node.bases:
        name = getattr(base, "id", "")
        near = [other for other in tree.body if getattr(other, "name", None) == name]
        home, _, original = _imports(tree).get(name, "").rpartition(".")
        parent, place = (near[0], tree) if near else find(original, home) if home else (None, None)
        if isinstance(parent, ast.ClassDef):
            found |= methods(parent, place)
    return found | {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}


def _is_property(function):
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def _arguments(function):
    """Returns a function's arguments and return type as written, without `self` or `cls`."""
    text = ast.unparse(function.args)
    text = text.removeprefix("self, ").removeprefix("self").removeprefix("cls, ").removeprefix("/")
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"({text.removeprefix(', ')}){returns}"


def _fields(node):
    """Returns the fields of a dataclass or named tuple as written."""
    fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
    return ", ".join(map(ast.unparse, fields))


def _code(parts):
    """Returns a text block of signatures, each followed by its docstring."""
    texts = [
        "\n\n".join(filter(None, [signature, textwrap.indent(docstring or "", "    ")]))
        for signature, docstring in parts
    ]
    return ["```text", *"\n\n".join(texts).splitlines(), "```", ""]
