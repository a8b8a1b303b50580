"""The linear models of the benchmark of choices."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from paths import ROOT

from bert_tf.training.evaluation import read_results

PROGRAM = ROOT / "benchmarks" / "choices" / "linear.py"


def run(*flags):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(PROGRAM), *map(str, flags)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def write_nsmc(folder, train, test):
    for split, rows in (("train", train), ("test", test)):
        lines = ["id\tdocument\tlabel", *(f"{i}\t{t}\t{y}" for i, (t, y) in enumerate(rows))]
        (folder / f"ratings_{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_what_two_sentences_share():
    sys.path.append(str(ROOT / "benchmarks"))  # after the project's packages
    from choices.linear import pair_features

    first, second = (scipy.sparse.csr_matrix([row]) for row in ([0.6, 0.8, 0.0], [0.8, 0.0, 0.6]))
    found = pair_features(first, second).toarray()[0]
    wanted = [[0.6, 0.8, 0], [0.8, 0, 0.6], [0.6, 0, 0], [0.48]]
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-12)


def test_words_of_reviews(tmp_path):
    """The label is a word that stands anywhere; words of one review alone say nothing."""
    rng = np.random.default_rng(0)
    reviews = []
    for number in range(240):
        words = [f"말{w}" for w in rng.integers(0, 30, 6)] + [f"홀로{number}"]
        words.insert(rng.integers(0, 7), ("싫다", "좋다")[number % 2])
        reviews.append((" ".join(words), number % 2))
    write_nsmc(tmp_path, reviews[:200], reviews[200:])
    output = tmp_path / "output"
    flags = ("--task_name=nsmc", f"--data_dir={tmp_path}", f"--output_dir={output}")
    done = run(*flags, "--features=words")
    assert done.returncode == 0, done.stderr
    results = read_results(output)
    assert results["test_accuracy"] == 1 and results["held_out_accuracy"] == 1
    assert 5 < results["held_out_examples"] < 40  # about a tenth of 200
    assert results["longest_ngram"] == 1  # the first of equally good ones
    assert "n-grams up to 3, strength 1: accuracy" in done.stdout


def test_scores_of_pairs_and_another_task(tmp_path):
    rng = np.random.default_rng(1)

    def pairs(count):
        for _ in range(count):
            common = rng.integers(0, 6)
            words = rng.choice(40, 15, replace=False)
            first, second = words[:5], [*words[:common], *words[5 : 10 - common]]
            yield " ".join(f"말{w}" for w in first), " ".join(f"말{w}" for w in second), common

    header = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
    for split, count in (("train", 300), ("dev", 40), ("test", 40)):
        lines = [f"a\tb\tc\t{i}\t{y}\t{a}\t{b}\n" for i, (a, b, y) in enumerate(pairs(count))]
        (tmp_path / f"sts-{split}.tsv").write_text(header + "".join(lines), encoding="utf-8")
    output = tmp_path / "output"
    done = run(
        "--task_name=korsts", f"--data_dir={tmp_path}", f"--output_dir={output}",
        "--features=words", "--other_task=korsts", f"--other_data_dir={tmp_path}",
        "--longest_ngram=2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = read_results(output)
    assert results["longest_ngram"] == 2 and "up to 1" not in done.stdout
    assert results["test_pearson"] > 0.9 and results["dev_pearson"] > 0.9
    assert results["korsts_test_pearson"] == pytest.approx(results["test_pearson"])


def test_bad_input(tmp_path):
    done = run("--task_name=nsmc", f"--data_dir={tmp_path}", f"--output_dir={tmp_path / 'o'}")
    assert done.returncode == 1 and done.stderr.startswith("error: the task needs a file")
    half = ("--task_name=korsts", "--other_task=klue-sts", f"--data_dir={tmp_path}")
    done = run(*half, f"--output_dir={tmp_path / 'o'}")
    assert done.returncode == 1 and "--other_data_dir must be given together" in done.stderr
    assert not (tmp_path / "o").exists()
