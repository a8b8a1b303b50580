"""The benchmark of requests runs on a tiny model."""

import importlib
import re
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT

PROGRAM = ROOT / "benchmarks" / "serving" / "requests_speed.py"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    return importlib.import_module(PROGRAM.stem)


def test_texts(benchmark, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a\n\nb\nc\n", encoding="utf-8")
    assert benchmark.read_texts(path, 1) == ["a", "b", "c"]
    assert benchmark.read_texts(path, 2) == ["a b", "c"]


def test_other_probabilities_end_the_measurement(benchmark, monkeypatch):
    answers = {"one": [[0.1, 0.9]], "other": [[0.2, 0.8]]}
    monkeypatch.setattr(
        benchmark, "ask", lambda process, *request: {"probabilities": answers[process]}
    )
    with pytest.raises(SystemExit, match="probabilities must be equal. Received: .*0.1 .*0.2"):
        benchmark.measure(["one", "other"], "sentences", 1, 1)


def test_speeds(benchmark, monkeypatch):
    def ask(process, texts, batch, seconds):
        return {"probabilities": [[0.5]], "requests": process, "seconds": 2.0}

    monkeypatch.setattr(benchmark, "ask", ask)
    speeds = benchmark.measure([10, 4], "sentences", 1, 3)
    assert np.array_equal(speeds, [[5.0] * 3, [2.0] * 3])


@pytest.mark.slow
def test_run():
    flags = "--sizes=tiny --batches=2 --texts=sentences --rounds=1 --contenders=saved_model"
    run = subprocess.run(
        [sys.executable, str(PROGRAM), *flags.split()], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"\| tiny \| sentences \| 2 \| [0-9.]+ \(0%\) \|", run.stdout)
