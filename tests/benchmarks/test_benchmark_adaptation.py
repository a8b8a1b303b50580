"""The benchmarks of new rows and new positions: their tables, tiny runs."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT, TEST_DATA
from record_files import FORMAT, describe, make_files
from tiny_models import tiny_model, write_config

from bert_tf.checkpoint import save_google_checkpoint
from bert_tf.training.evaluation import read_results

FOLDER = ROOT / "benchmarks" / "adaptation"


def call(code):
    """What a line of Python prints that has imported the benchmarks."""
    start = f"import sys; sys.path.insert(0, {str(FOLDER)!r})\nimport new_rows, new_positions\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def table_of(name, *flags):
    """The rows that a benchmark prints; it must succeed."""
    command = [sys.executable, str(FOLDER / f"{name}.py"), *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]


@pytest.mark.slow
def test_the_table():
    code = (
        "losses = {('mean', 1): (6, 4), ('mean', 2): (7, 5), ('random', 1): (8, 1)}\n"
        "for row in new_rows.table(losses): print(*row)"
    )
    assert call(code).splitlines() == [
        "mean mean 6.500 4.500",
        "mean 1 6.000 4.000",
        "mean 2 7.000 5.000",
        "random mean 8.000 1.000",
        "random 1 8.000 1.000",
    ]


@pytest.mark.slow
def test_the_held_out_reviews_are_the_last(tmp_path):
    reviews = ["id\tdocument\tlabel", "1\ta\t0", "2\t\t0", *(f"{i}\tr{i}\t1" for i in range(9))]
    (tmp_path / "reviews.txt").write_text("\n".join(reviews) + "\n")
    code = (
        "from pathlib import Path; new_rows.HELD_OUT = 2\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "print(new_rows.split_reviews(folder / 'reviews.txt', 5, folder))"
    )
    assert call(code) == "{'train': 5, 'held_out': 2}\n"
    assert (tmp_path / "train.txt").read_text() == "a\n\nr0\n\nr1\n\nr2\n\nr3\n"
    assert (tmp_path / "held_out.txt").read_text() == "r4\n\nr5\n"


@pytest.mark.slow
def test_a_tiny_run(tmp_path):
    """Random weights learn nothing in two updates, but every program takes part."""
    model = tmp_path / "model"
    model.mkdir()
    for name in ("vocab.txt", "tokenizer_config.json"):
        (model / name).write_bytes((TEST_DATA / "sample_tokenizer" / name).read_bytes())
    sizes = {"vocab_size": 3000, "max_position_embeddings": 64}
    write_config(model / "bert_config.json", **sizes)
    save_google_checkpoint(tiny_model(num_hidden_layers=1, **sizes), str(model / "model.ckpt-1"))
    texts = ("정말 재미있는 영화", "너무 지루하고 길다", "배우가 아깝다 노잼", "꿀잼 또 본다")
    rows = [f"{i}\t{texts[i % 4]} {i}\t1" for i in range(2100)]
    (tmp_path / "reviews.txt").write_text("\n".join(["id\tdocument\tlabel", *rows]) + "\n")
    flags = [f"--model_dir={model}", f"--reviews={tmp_path}/reviews.txt", "--num_reviews=100"]
    flags += [f"--work_dir={tmp_path}/work", "--vocab_size=700", "--steps=2", "--seeds=1"]
    rows = table_of("new_rows", *flags)
    assert [row[0] for row in rows] == ["| new rows", "| mean", "| mean", "| random", "| random"]
    report = json.loads((tmp_path / "work" / "mean-1" / "adaptation.json").read_text())
    assert report["vocabulary"]["averaged"]["count"] > 0


@pytest.mark.slow
def test_the_table_of_positions():
    code = (
        "scores = {('random', 1): (0.5, 2, 0.25, 1), ('repeat', 1): (0.125, 3, 0.5, 2),\n"
        "          ('repeat', 2): (0.125, 5, 0.25, 4)}\n"
        "for row in new_positions.table(scores): print(*row)"
    )
    assert call(code).splitlines() == [
        "random 1 50.0 2.00 25.0 1.00",
        "repeat 2 12.5 4.00 37.5 3.00",
    ]


@pytest.mark.slow
def test_a_tiny_run_of_positions(tmp_path):
    """Only 8 of 32 positions are trained: each beginning gives another model before training."""
    model = tmp_path / "model"
    model.mkdir()
    write_config(model / "bert_config.json", max_position_embeddings=32)
    tiny = tiny_model(num_hidden_layers=1, max_position_embeddings=32)
    save_google_checkpoint(tiny, str(model / "model.ckpt-1"))
    (model / "pretraining.json").write_text('{"trained_positions": 8}')
    for path in make_files(tmp_path, (20, 16)):
        describe(path, FORMAT)
    flags = [f"--model_dir={model}", f"--work_dir={tmp_path}/work", "--steps=2"]
    flags += [f"--{name}={tmp_path}/part-*.tfrecord" for name in ("input_file", "eval_input_file")]
    heading, *rows = table_of("new_positions", *flags)
    assert [row[0] for row in rows] == ["| random", "| repeat", "| interpolate"]
    before = [float(row[3]) for row in rows]
    assert all(abs(loss - np.log(60)) < 1 for loss in before)  # of 60 pieces
    results = [
        read_results(tmp_path / "work" / f"{row[0][2:]}-before")["masked_lm_loss"] for row in rows
    ]
    assert len(set(results)) == 3
