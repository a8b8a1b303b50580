"""The file of a tokenized text, from which lessons draw their rows."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT
from sentence_order.lesson_text import clear_pairs, tokenize
from sentence_order.rule import OverlapRule
from sentence_order.text_file import SPECIAL, TextFile, read_text, write_text

from create_pretraining_data.instances.text import TokenizedText, tokenize_documents
from run_scripts.reference.text import documents
from tokenization import load_tokenizer

TEXT = ROOT / "sample_corpus" / "heldout.txt"
MODEL = ROOT / "reference_model"


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(MODEL)


@pytest.fixture(scope="module")
def content(tokenizer):
    text, special = tokenize(TEXT, tokenizer), {name: getattr(tokenizer, name) for name in SPECIAL}
    return TextFile(text, text, np.array([[0, 20, 20, 40, 0]]), special)


def test_file_keeps_a_text(tmp_path, content):
    write_text(str(tmp_path / "text"), content)
    found = read_text(str(tmp_path / "text"))
    for name in ("train", "held_out"):
        for part, expected in getattr(content, name)._asdict().items():
            np.testing.assert_array_equal(getattr(getattr(found, name), part), expected)
    np.testing.assert_array_equal(found.clear, content.clear)
    assert found.special == content.special


def test_ids_that_leave_no_bit_for_the_start_of_a_word_are_refused(tmp_path, content):
    large = TokenizedText(np.array([1 << 15]), np.array([True]), [0, 1], [0, 1])
    with pytest.raises(ValueError, match="32768"):
        write_text(str(tmp_path / "text"), content._replace(train=large))
    assert not list(tmp_path.iterdir())


def test_program_writes_the_text_and_its_clear_rows(tmp_path, tokenizer):
    path = tmp_path / "text.npz.xz"
    done = subprocess.run(
        [sys.executable, "benchmarks/sentence_order/lesson_text.py", f"--input_file={TEXT}",
         f"--held_out={TEXT}", f"--tokenizer_dir={MODEL}", "--least_score=2", "--shortest=60",
         "--max_seq_length=96", f"--output_file={path}"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found, expected = read_text(path), tokenize_documents(documents([TEXT]), tokenizer)
    np.testing.assert_array_equal(found.train.ids, expected.ids)
    assert found.train.documents == expected.documents
    assert found.special == {name: getattr(tokenizer, name) for name in SPECIAL}
    assert len(found.clear) and set(found.clear[:, 4].tolist()) == {0, 1}


def test_clear_rows_are_those_in_which_the_rule_is_sure(tokenizer):
    @dataclasses.dataclass
    class Flags:
        max_seq_length: int = 96
        least_score: float = -1e9
        shortest: int = 60
        passes: int = 1
        random_seed: int = 1

    text = tokenize(TEXT, tokenizer)
    every = clear_pairs(text, tokenizer, Flags())
    ordered = [[text.ids[a:b], text.ids[c:d]][:: -1 if label else 1] for a, b, c, d, label in every]
    known = [[s[s != tokenizer.unk_id] for s in pair] for pair in ordered]
    rule = OverlapRule(known)
    scores = np.array([rule.score(*pair) for pair in known])
    kept = clear_pairs(text, tokenizer, Flags(least_score=2.0))
    assert 0 < len(kept) < len(every)
    np.testing.assert_array_equal(kept, every[scores >= 2.0])
    assert clear_pairs(text, tokenizer, Flags(shortest=97)).shape == (0, 5)


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        ({"input_file": "missing"}, 1, "error: "),
        # Before the text is read, which takes minutes.
        ({"output_file": "file/text", "input_file": "missing"}, 1, "error: --output_file must"),
        ({"passes": "0"}, 2, "--passes must be at least 1"),
    ],
)
def test_refusals_take_one_line(tmp_path, flags, status, message):
    (tmp_path / "file").touch()
    given = {
        "input_file": TEXT, "held_out": TEXT, "tokenizer_dir": MODEL, "least_score": 2,
        "output_file": "text", **flags,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "sentence_order" / "lesson_text.py",
         *(f"--{name}={value}" for name, value in given.items())],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == status and message in done.stderr.splitlines()[-1]
    assert status == 2 or len(done.stderr.splitlines()) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
