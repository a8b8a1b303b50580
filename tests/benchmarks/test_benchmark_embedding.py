"""The benchmark of embed: its texts, its comparison, a run with a tiny model."""

import importlib
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from paths import ROOT

PROGRAM = ROOT / "benchmarks" / "serving" / "embedding.py"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    return importlib.import_module(PROGRAM.stem)


def test_texts(benchmark, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a\n\nb\nc\n", encoding="utf-8")
    assert benchmark.read_texts(path, 2) == ["a", "b"]
    path.write_text("id\tdocument\tlabel\n1\t좋다\t1\n2\t\t0\n3\t싫다\t0\n", encoding="utf-8")
    assert benchmark.read_texts(path, 20) == ["좋다", "싫다"]


def contender(kind, *values):
    return SimpleNamespace(kind=kind, vectors=lambda: np.array([values]))


def test_other_vectors_end_the_measurement(benchmark):
    running = [contender("embed", 0.5, 1), contender("by_length", 0.5, 1.00005)]
    assert benchmark.largest_difference(running) == pytest.approx(5e-5)
    with pytest.raises(SystemExit, match="vectors of embed and in_order must be equal.* 2.0e-01"):
        benchmark.largest_difference([*running, contender("in_order", 0.7, 1)])


@pytest.mark.slow
def test_run(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("나는 학교에 갔다.\n비가 온다.\n" * 20, encoding="utf-8")
    flags = f"--sizes=tiny --texts={path} --count=30 --rounds=1 --contenders=embed"
    command = [sys.executable, str(PROGRAM), *flags.split()]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert re.search(r"\| tiny \| 30 \| [0-9.]+ \(0%\) \| 0.0e\+00 \|", run.stdout)
