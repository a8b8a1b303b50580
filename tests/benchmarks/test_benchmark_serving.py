"""The benchmarks of requests and of embed: texts, what they compare, runs with tiny models."""

import importlib
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from paths import ROOT

FOLDER = ROOT / "benchmarks" / "serving"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def benchmark(load):
    return load("requests_speed")


@pytest.fixture
def embedding(load):
    return load("embedding")


def run(program, flags):
    """What a run prints."""
    command = [sys.executable, str(FOLDER / program), *flags.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
def test_run_of_requests():
    flags = "--sizes=tiny --batches=2 --texts=sentences --rounds=1 --contenders=saved_model"
    output = run("requests_speed.py", flags)
    assert re.search(r"\| tiny \| sentences \| 2 \| [0-9.]+ \(0%\) \|", output)


def test_texts_to_embed(embedding, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a\n\nb\nc\n", encoding="utf-8")
    assert embedding.read_texts(path, 2) == ["a", "b"]
    path.write_text("id\tdocument\tlabel\n1\t좋다\t1\n2\t\t0\n3\t싫다\t0\n", encoding="utf-8")
    assert embedding.read_texts(path, 20) == ["좋다", "싫다"]


def contender(kind, *values):
    return SimpleNamespace(kind=kind, vectors=lambda: np.array([values]))


def test_other_vectors_end_the_measurement(embedding):
    running = [contender("embed", 0.5, 1), contender("by_length", 0.5, 1.00005)]
    assert embedding.largest_difference(running) == pytest.approx(5e-5)
    with pytest.raises(SystemExit, match="vectors of embed and in_order must be equal.* 2.0e-01"):
        embedding.largest_difference([*running, contender("in_order", 0.7, 1)])


@pytest.mark.slow
def test_run_of_embed(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("나는 학교에 갔다.\n비가 온다.\n" * 20, encoding="utf-8")
    flags = f"--sizes=tiny --texts={path} --count=30 --rounds=1 --contenders=embed"
    output = run("embedding.py", flags)
    assert re.search(r"\| tiny \| 30 \| [0-9.]+ \(0%\) \| 0.0e\+00 \|", output)
