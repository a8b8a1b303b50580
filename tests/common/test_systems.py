"""What differs between systems: macOS, Windows, and one without tensorflow-text."""

import ast
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_common import cpu
from bert_common.errors import InputError
from bert_common.startup import begin
from finetuning import inputs
from tests.support.paths import MODULES, TEST_DATA, WHEEL, is_for_types, source_of
from tokenization import KoreanTokenizer

SOURCES = [path for path in MODULES if path.parts[0] in WHEEL]
SAMPLE = TEST_DATA / "sample_tokenizer"


def test_cores_where_the_system_does_not_tell_which_are_left(monkeypatch):
    assert cpu.available_cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")  # macOS
    assert cpu.available_cores() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cpu.available_cores() == 1


def test_one_file_asks_what_linux_alone_knows():
    assert [path.name for path in SOURCES if "os.sched_" in source_of(path)] == ["cpu.py"]


@pytest.fixture
def without_tensorflow_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)  # its import fails
    for name in ("graph", "normalization", "wordpiece"):  # are imported anew
        monkeypatch.delitem(sys.modules, f"tokenization.tf_graph.{name}", raising=False)


def test_a_graph_without_tensorflow_text_is_one_line(without_tensorflow_text):
    tokenizer = KoreanTokenizer(SAMPLE / "vocab.txt")
    with pytest.raises(InputError, match="requires the tensorflow-text of TensorFlow's version"):
        tokenizer.encode_batch(["한국어"])


def test_fine_tuning_works_without_tensorflow_text(without_tensorflow_text, monkeypatch):
    tokenizer = KoreanTokenizer(SAMPLE / "vocab.txt")
    monkeypatch.setattr(inputs, "GRAPH_FROM", 1)
    rows = inputs.encode_pairs(tokenizer, [("바다를 보고", None), ("싶었다", "비가")], 16)
    expected = [tokenizer.cls_id, *tokenizer.encode("바다를 보고"), tokenizer.sep_id]
    np.testing.assert_array_equal(rows[0].ids, expected)


def imports(tree):
    """The modules that are imported when a file is, as far as functions do not import them."""
    definitions = ast.FunctionDef | ast.ClassDef
    runs = [n for n in tree.body if not isinstance(n, definitions) and not is_for_types(n)]
    for node in ast.walk(ast.Module(runs, [])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_nothing_else_imports_tensorflow_text():
    found = {path: set(imports(ast.parse(source_of(path)))) for path in SOURCES}
    graph = Path("tokenization/tf_graph")
    users = [path for path, names in found.items() if "tensorflow_text" in names]
    assert users == [graph / "wordpiece.py"]
    # The graphs of exported models, which are imported when one is made.
    exported = ("serving.py", "served_entities.py")
    others = [
        (path, name)
        for path, names in found.items()
        if path.parent not in (graph, Path("finetuning/serving")) and path.name not in exported
        for name in names
    ]
    assert len(others) > 100 and not [pair for pair in others if "tf_graph" in pair[1]]


def test_windows_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        begin()
    assert str(ended.value).startswith("error: this project runs on Linux, on macOS, and in WSL2.")
