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


@pytest.fixture
def similarity(load):
    return load("similarity")


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


def test_cosines(similarity):
    first, second = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]]), np.array([[4.0, 3.0]] * 3)
    assert similarity.cosines(first, second) == pytest.approx([0.96, 0.8, 0.0])


HEADINGS = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2"
# Label, two texts: the labels are in the order of the words that both have.
RATED = (
    ("5.0", "강아지가 공원에서 뛴다", "강아지가 공원에서 뛴다"),
    ("3.5", "아이가 공원에서 논다", "아이가 바다에서 논다"),
    ("1.5", "비가 많이 온다", "어제는 비가 왔다"),
    ("0.0", "고기를 굽는 남자", "노래를 부르며 춤춘다"),
)


class AngleModel:
    """Its vectors of a pair's texts have an angle of 90 degrees, less 10 for each point."""

    def embed(self, texts, pooling, layer):
        assert (pooling, layer) == ("mean", -1)
        firsts = [first for _, first, _ in RATED]
        if texts == firsts:
            return np.array([[1.0, 0.0]] * len(texts))
        angles = np.radians([90 - 10 * float(label) for label, _, _ in RATED])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_similarity(similarity, tmp_path, monkeypatch, capsys):
    lines = [f"a\tb\t2012\t{i}\t" + "\t".join(pair) for i, pair in enumerate(RATED)]
    for split in ("dev", "test"):
        text = "\n".join([HEADINGS, *lines, ""])
        (tmp_path / f"sts-{split}.tsv").write_text(text, encoding="utf-8")
    monkeypatch.setattr(similarity, "load_model", lambda folder: AngleModel())
    monkeypatch.setattr(sys, "argv", ["similarity.py", f"--data_dir={tmp_path}"])
    similarity.main()
    dev, counted, test, _ = capsys.readouterr().out.strip().splitlines()[2:]
    # The cosines, sines of 10 degrees for each point, are 0.766, 0.574, 0.259, 0.
    assert dev == "| dev | embed, mean, layer -1 | 0.998 | 1.000 |"
    assert test == dev.replace("dev", "test")
    assert counted.startswith("| dev | TF-IDF of characters |") and counted.endswith("| 1.000 |")


def test_similarity_without_data(similarity, tmp_path, monkeypatch):
    """Noticed before the model is loaded."""
    monkeypatch.setattr(similarity, "load_model", None)
    monkeypatch.setattr(sys, "argv", ["similarity.py", f"--data_dir={tmp_path}"])
    with pytest.raises(SystemExit, match="^error: .*sts-dev.tsv"):
        similarity.main()
