"""Where a model tells the order of two segments, and the rule beside it."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT

from bert_tf.training.evaluation import read_results

sys.path.append(str(ROOT / "benchmarks"))  # after the project's packages
from choices.order import Row, accuracy, compare, first_pieces, rule_scores

PROGRAM = ROOT / "benchmarks" / "choices" / "order.py"
TEXT = ROOT / "sample_corpus" / "heldout.txt"
MODEL = ROOT / "reference_model"


def row(first, second, *, swapped=False):
    return Row({}, (first, second), (tuple(first[:6]), tuple(second[:6])), swapped)


def test_the_rule():
    """The end of one segment and the start of the next share pieces, rare ones above all."""
    rows = [
        row([1, 2, 3, 9], [9, 4, 5, 6]),  # 9 is shared where they meet
        row([7, 4, 5, 2], [3, 1, 8, 7], swapped=True),  # 7 where they would meet
        row([1, 2], [3, 4]),  # nothing
        row([1, 8], [8, 1]),  # 8 where they meet, but 1, which all rows have, where they would
    ]
    wanted = [math.log(4), -math.log(4), 0]  # 9 and 7 are pieces of one row alone
    np.testing.assert_allclose(rule_scores(rows, window=2), [*wanted, 0])
    assert rule_scores(rows, window=1)[3] == pytest.approx(math.log(4 / 2))


def test_accuracy_counts_undecided_rows_as_half():
    swapped = np.array([False, True, False, True])
    assert accuracy(np.array([2.0, -1.0, -3.0, 0.0]), swapped) == (1 + 1 + 0 + 0.5) / 4


def test_rows_with_a_beginning_are_a_group():
    rows = [row([1, 2], [3, 4]), row([3, 4], [1, 2], swapped=True), row([5, 6], [7, 8])]
    results = compare(rows, {(1, 2)}, np.array([1.0, -1.0, -1.0]))
    assert results["examples"] == 3 and results["beginning_share"] == pytest.approx(2 / 3)
    assert results["model_accuracy_beginning"] == 1 and results["model_accuracy_others"] == 0
    assert results["model_accuracy_all"] == pytest.approx(2 / 3)
    assert results["rule_accuracy_all"] == 0.5  # nothing is shared


def run(program, *flags):
    command = [sys.executable, str(ROOT / program), *map(str, flags)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("order") / "heldout.tfrecord"
    done = run(
        "create_pretraining_data.py", f"--input_file={TEXT}", f"--tokenizer_dir={MODEL}",
        f"--output_file={path}", "--objective=sop", "--max_seq_length=64", "--dupe_factor=2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.slow
def test_the_model_is_as_right_as_its_evaluation_says(records, tmp_path):
    flags = f"--input_file={records}", f"--output_dir={tmp_path / 'eval'}"
    evaluation = run(
        "run_pretraining.py", f"--model_dir={MODEL}", *flags, "--do_eval", "--max_seq_length=64",
        "--nodo_train", "--max_eval_steps=1000", "--precision=float32",
    )  # fmt: skip
    assert evaluation.returncode == 0, evaluation.stderr
    wanted = read_results(tmp_path / "eval")
    flags = f"--input_file={records}", f"--held_out={TEXT}", f"--output_dir={tmp_path / 'order'}"
    done = run(PROGRAM, f"--model_dir={MODEL}", *flags)
    assert done.returncode == 0, done.stderr
    results = read_results(tmp_path / "order")
    assert results["examples"] == wanted["examples"] > 20
    assert results["model_accuracy_all"] == pytest.approx(
        wanted["sentence_order_accuracy"], abs=1e-6
    )
    share, parts = results["beginning_share"], ("beginning", "others")
    assert 0.05 < share < 0.9
    together = sum(
        weight * results[f"model_accuracy_{part}"]
        for weight, part in zip((share, 1 - share), parts, strict=True)
    )
    assert results["model_accuracy_all"] == pytest.approx(together, abs=1e-6)


def test_what_is_refused(records, tmp_path):
    flags = f"--held_out={TEXT}", f"--output_dir={tmp_path}", f"--model_dir={MODEL}"
    done = run(PROGRAM, *flags, f"--input_file={tmp_path / 'none.tfrecord'}")
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("error: ")
    packed = tmp_path / "packed.tfrecord"
    run(
        "create_pretraining_data.py", f"--input_file={TEXT}", f"--tokenizer_dir={MODEL}",
        f"--output_file={packed}", "--objective=sop", "--max_seq_length=64", "--packing",
    )  # fmt: skip
    done = run(PROGRAM, *flags, f"--input_file={packed}")
    assert done.returncode == 1
    assert "error: --input_file must hold records of" in done.stderr
    assert "Traceback" not in done.stderr


def test_first_pieces_of_documents(tmp_path):
    from tokenization import load_tokenizer

    tokenizer = load_tokenizer(MODEL)
    path = tmp_path / "text.txt"
    path.write_text("서울은 도시이다.\n그곳에 산다.\n\n\n부산은 항구이다.\n", encoding="utf-8")
    ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line)) for line in
           ("서울은 도시이다.", "부산은 항구이다.")]  # fmt: skip
    assert first_pieces(path, tokenizer) == {tuple(of_line[:6]) for of_line in ids}
