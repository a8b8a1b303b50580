"""On which rows a model can tell the order of two segments, and the rule beside it."""

import math
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from choices.order import Row, accuracy, beginnings_of, compare, read_rows, rule_scores
from paths import ROOT
from safetensors.numpy import load_file, save_file

from bert_tf.training.evaluation import read_results
from create_pretraining_data.records.reader import read_format
from tokenization import load_tokenizer

PROGRAM = ROOT / "benchmarks" / "choices" / "order.py"
TEXT = ROOT / "sample_corpus" / "heldout.txt"
MODEL = ROOT / "reference_model"


def row(first, second, *, swapped=False):
    return Row({}, (first, second), (tuple(first[:10]), tuple(second[:10])), swapped)


def test_the_rule():
    """The end of one segment and the start of the next share pieces, rare ones above all."""
    rows = [
        row([1, 2, 3, 9], [9, 4, 5, 6]),  # 9 is shared where they meet
        row([7, 4, 5, 2], [3, 1, 8, 7], swapped=True),  # 7 where they would meet
        row([1, 2], [3, 4]),  # nothing
        row([1, 8], [8, 1]),  # 8 where they meet, but 1, which all rows have, where they would
    ]
    wanted = [math.log(4), -math.log(4), 0, math.log(4 / 2)]
    np.testing.assert_allclose(rule_scores(rows), wanted)
    assert rule_scores([row([1, 5, 2], [2, 5, 1]), row([9], [9])])[0] == 0  # 5 is in both halves


def test_accuracy_counts_ties_as_half():
    swapped = np.array([False, True, False, True])
    assert accuracy(np.array([2.0, -1.0, -3.0, 0.0]), swapped) == (1 + 1 + 0 + 0.5) / 4


def test_rows_with_a_beginning_are_a_group():
    rows = [row([1, 2], [3, 4]), row([3, 4], [1, 2], swapped=True), row([5, 6], [7, 8])]
    results = compare(rows, {(1, 2)}, np.array([1.0, -1.0, -1.0]))
    assert results["examples"] == 3 and results["beginning_share"] == pytest.approx(2 / 3)
    assert results["model_accuracy_beginning"] == 1 and results["model_accuracy_others"] == 0
    assert results["model_accuracy_all"] == pytest.approx(2 / 3)
    assert results["rule_accuracy_all"] == 0.5  # nothing is shared


class Letters:
    """A tokenizer whose pieces are letters."""

    def tokenize(self, text):
        return list(text)

    def convert_tokens_to_ids(self, tokens):
        return [ord(token) for token in tokens]


def test_beginnings_of_documents(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abc\ndefghijklmnop\nqrs\n  \n\nABCDEFGHIJKLMN\nO\n", encoding="utf-8")
    wanted = ["abcdefghij", "bcdefghijk", "cdefghijkl", "ABCDEFGHIJ", "BCDEFGHIJK", "FGHIJKLMNO"]
    found = {"".join(map(chr, ids)) for ids in beginnings_of(str(path), Letters())}
    assert found.issuperset(wanted)
    assert not found & {"defghijklm", "efghijklmn"}  # these start in the second sentence
    assert len(found) == 3 + 14


def run(program, *flags):
    command = [sys.executable, str(ROOT / program), *map(str, flags)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def make_records(path, *flags):
    done = run(
        "create_pretraining_data.py", f"--input_file={TEXT}", f"--tokenizer_dir={MODEL}",
        f"--output_file={path}", "--max_seq_length=64", "--dupe_factor=2", *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return make_records(tmp_path_factory.mktemp("order") / "sop.tfrecord", "--objective=sop")


def test_rows_are_pieces_of_the_text(records):
    tokenizer = load_tokenizer(MODEL)
    texts = TEXT.read_text(encoding="utf-8").strip().split("\n\n")
    documents = [
        [piece for line in text.split("\n") for piece in tokenizer.tokenize(line)] for text in texts
    ]
    ids = [" ".join(map(str, tokenizer.convert_tokens_to_ids(pieces))) for pieces in documents]
    special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id}
    frame = {tokenizer.cls_id, tokenizer.sep_id}
    rows = read_rows(str(records), read_format(str(records)), special)
    assert {each.swapped for each in rows} == {False, True}
    for each in rows:
        ids_of_row = each.features["input_ids"].tolist()
        kept = [piece for piece in ids_of_row if piece not in special | frame]
        assert [piece for segment in each.segments for piece in segment] == kept
        starts = [f" {' '.join(map(str, start))} " for start in each.starts]
        if each.swapped:
            starts.reverse()
        # Both are in one document, one after the other.
        found = [f" {text} " for text in ids if all(start in f" {text} " for start in starts)]
        assert found
        assert any(text.find(starts[0]) < text.rfind(starts[1]) for text in found)


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
    accuracy_of_all = pytest.approx(wanted["sentence_order_accuracy"], abs=1e-6)
    assert results["model_accuracy_all"] == accuracy_of_all
    share, parts = results["beginning_share"], ("beginning", "others")
    assert 0.05 < share < 0.9
    together = sum(
        weight * results[f"model_accuracy_{part}"]
        for weight, part in zip((share, 1 - share), parts, strict=True)
    )
    assert together == accuracy_of_all


def error_of(done):
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr.splitlines()[-1]


def test_other_records_are_refused(records, tmp_path):
    flags = f"--held_out={TEXT}", f"--output_dir={tmp_path}", f"--model_dir={MODEL}"
    done = run(PROGRAM, *flags, f"--input_file={tmp_path / 'none.tfrecord'}")
    assert error_of(done).endswith("must exist. Received: no such file")
    for name, made, said in (
        ("packed", ("--objective=sop", "--packing"), "sop --masking=static --packing=true"),
        (
            "unmasked",
            ("--objective=sop", "--masking=dynamic"),
            "sop --masking=dynamic --packing=false",
        ),
        ("nsp", ("--objective=nsp",), "nsp --masking=static --packing=false"),
    ):
        other = make_records(tmp_path / f"{name}.tfrecord", *made)
        error = error_of(run(PROGRAM, *flags, f"--input_file={other}"))
        assert error.startswith("error: --input_file must hold records of")
        assert error.endswith(said)
    done = run(PROGRAM, *flags[1:], f"--held_out={tmp_path / 'none'}", f"--input_file={records}")
    assert str(tmp_path / "none") in error_of(done)
    truncated = tmp_path / "truncated.tfrecord"
    shutil.copy(f"{records.with_suffix('')}.json", truncated.with_suffix(".json"))
    shutil.copytree(f"{records.with_suffix('')}.tokenizer", truncated.with_suffix(".tokenizer"))
    truncated.write_bytes(records.read_bytes()[:-100])
    done = run(PROGRAM, *flags, f"--input_file={truncated}")
    assert str(truncated) in error_of(done)


@pytest.mark.slow
def test_other_models_are_refused(records, tmp_path):
    flags = f"--held_out={TEXT}", f"--output_dir={tmp_path / 'o'}", f"--input_file={records}"
    headless = tmp_path / "headless"
    shutil.copytree(MODEL, headless)
    weights = load_file(headless / "model.safetensors")
    kept = {name: values for name, values in weights.items() if "seq_relationship" not in name}
    assert len(kept) == len(weights) - 2
    save_file(kept, headless / "model.safetensors")
    error = error_of(run(PROGRAM, *flags, f"--model_dir={headless}"))
    assert error.startswith("error: --model_dir must hold a pre-trained model with its head")
    other = tmp_path / "other"
    shutil.copytree(MODEL, other)
    pieces = (other / "vocab.txt").read_text(encoding="utf-8").split("\n")
    pieces[5000], pieces[5001] = pieces[5001], pieces[5000]
    (other / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    error = error_of(run(PROGRAM, *flags, f"--model_dir={other}"))
    assert error.startswith("error: --model_dir must have the tokenizer of the records")
