"""On which rows a model can tell the order of two segments."""

import numpy as np
import pytest

from benchmarks.quality.order import Row, accuracy, beginnings_of
from bert_tf.training.evaluation import read_results
from tests.support.benchmark_programs import output_of
from tests.support.paths import ROOT, printed_by

TEXT = ROOT / "sample_corpus" / "heldout.txt"
MODEL = ROOT / "reference_model"


def row(first, second, *, swapped=False):
    return Row({}, (tuple(first[:10]), tuple(second[:10])), swapped)


def test_accuracy_counts_ties_as_half():
    swapped = np.array([False, True, False, True])
    assert accuracy(np.array([2.0, -1.0, -3.0, 0.0]), swapped) == (1 + 1 + 0 + 0.5) / 4


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


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("order") / "sop.tfrecord"
    printed_by(
        ROOT / "create_pretraining_data.py", f"--input_file={TEXT}", f"--tokenizer_dir={MODEL}",
        f"--output_file={path}", "--max_seq_length=64", "--dupe_factor=2", "--objective=sop",
    )  # fmt: skip
    return path


@pytest.mark.slow
def test_the_model_is_as_right_as_its_evaluation_says(records, tmp_path):
    flags = f"--input_file={records}", f"--output_dir={tmp_path / 'eval'}"
    printed_by(
        ROOT / "run_pretraining.py", f"--model_dir={MODEL}", *flags, "--do_eval",
        "--nodo_train", "--max_seq_length=64", "--max_eval_steps=1000", "--precision=float32",
    )  # fmt: skip
    wanted = read_results(tmp_path / "eval")
    flags = f"--input_file={records}", f"--held_out={TEXT}", f"--output_dir={tmp_path / 'order'}"
    output_of("quality.order", f"--model_dir={MODEL}", *flags)
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
