"""The program adapt_checkpoint: what stays as it was, what its folder is good for, bad input."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from bert_common.errors import InputError
from bert_tf import BertConfig
from bert_tf.checkpoint import CheckpointArrays
from bert_tf.model import GOOGLE_NAMES
from model_formats.adaptation.arrays import adapted_arrays
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from run_scripts import classifier
from run_scripts.conversion.adapt_checkpoint import main
from tests.support.models.adapted_models import (
    BIAS,
    NEW,
    OLD,
    POSITIONS,
    TEXT,
    WORDS,
    adapt,
    outputs,
    read,
    write_model,
)
from tests.support.models.model_folders import drop_weights
from tests.support.paths import TEST_DATA
from tests.support.programs import NO_DROPOUT, PretrainingJob
from tests.support.task_data import write_splits
from tests.support.tiny_models import SIZES
from tests.support.vocabularies import SPECIAL, write_tokenizer
from tokenization import load_tokenizer


@pytest.fixture(params=("bert", "albert"))
def kind(request):
    return request.param


@pytest.fixture
def model_dir(tmp_path, kind):
    return write_model(tmp_path / "model", kind)


@pytest.fixture
def bert_dir(tmp_path):
    return write_model(tmp_path / "model")


def test_outputs_of_unchanged_pieces(model_dir, kind, tmp_path, capsys):
    """In another order, in a table of another size."""
    adapt(model_dir, tmp_path / "new", tokenizer_dir=write_tokenizer(tmp_path / "v", NEW))
    old_logits, old = outputs(model_dir, kind, TEXT)
    new_logits, new = outputs(tmp_path / "new", kind, TEXT)
    assert {"sequence_output", "pooled_output", "next_sentence_logits"} <= set(old)
    for name, value in old.items():
        np.testing.assert_allclose(new[name], value, atol=1e-6, rtol=0, err_msg=name)
    common = set(OLD) & set(NEW)
    assert len(common) == 11
    for token in common:
        np.testing.assert_allclose(new_logits[token], old_logits[token], atol=1e-6, rtol=0)
    printed = capsys.readouterr().out
    assert "대출 = 대 + ##출" in printed and "vocabulary: 15 tokens -> 14" in printed


def test_every_variable(model_dir, kind, tmp_path):
    """New rows by hand, the rest bit-equal; moments and counters do not come along."""
    old = read(model_dir)
    new = adapt(model_dir, tmp_path / "new", tokenizer_dir=write_tokenizer(tmp_path / "v", NEW))
    assert set(new) == {name for name in old if "adam" not in name} - {"global_step"}
    for name in set(new) - {WORDS, BIAS}:
        np.testing.assert_array_equal(new[name], old[name], err_msg=name)
    width = 32 if kind == "bert" else 16
    assert new[WORDS].shape == (len(NEW), width) and new[BIAS].shape == (len(NEW),)
    for row, token in enumerate(NEW):
        if token in OLD:
            np.testing.assert_array_equal(new[WORDS][row], old[WORDS][OLD.index(token)])
            assert new[BIAS][row] == old[BIAS][OLD.index(token)]
    loan, parts = NEW.index("대출"), [OLD.index("대"), OLD.index("##출")]
    np.testing.assert_allclose(new[WORDS][loan], old[WORDS][parts].mean(0), rtol=1e-6, atol=1e-7)
    assert new[BIAS][loan] == pytest.approx(old[BIAS][parts].mean(), rel=1e-6)
    report = json.loads((tmp_path / "new" / "adaptation.json").read_text())["vocabulary"]
    counts = {name: report[name]["count"] for name in ("kept", "averaged", "random", "dropped")}
    assert counts == {"kept": 11, "averaged": 1, "random": 2, "dropped": 4}
    assert report["random"]["examples"] == ["예금", "상환"]
    record = json.loads((tmp_path / "new" / "finetuning.json").read_text())
    assert record == {"task": "classification", "task_name": "tsv"}
    assert ModelFolder(str(tmp_path / "new")).trained_positions == 24


def test_random_rows_for_comparison(bert_dir, tmp_path):
    vocabulary = write_tokenizer(tmp_path / "v", NEW)
    mean, random, again, other = (
        adapt(bert_dir, tmp_path / name, tokenizer_dir=vocabulary, **flags)[WORDS]
        for name, flags in {
            "mean": {},
            "random": {"new_rows": "random"},
            "again": {"new_rows": "random"},
            "other": {"new_rows": "random", "random_seed": 1},
        }.items()
    )
    kept = [i for i, token in enumerate(NEW) if token in OLD]
    np.testing.assert_array_equal(mean[kept], random[kept])
    loan = NEW.index("대출")
    assert np.abs(mean[loan] - random[loan]).max() > 0.01
    np.testing.assert_array_equal(random, again)
    assert np.abs(other[loan] - random[loan]).max() > 0.01


def test_added_tokens(bert_dir, tmp_path, capsys):
    """One takes the unused row, one a spare row of the table, whose size stays."""
    (tmp_path / "words.txt").write_text("대출\n금리는\n금리\n")
    old = read(bert_dir)
    new = adapt(bert_dir, tmp_path / "new", add_tokens=tmp_path / "words.txt")
    assert new[WORDS].shape == old[WORDS].shape == (60, 32)
    changed = np.flatnonzero((new[WORDS] != old[WORDS]).any(1)).tolist()
    assert changed == [OLD.index("[unused1]"), len(OLD)]
    parts = {5: ["대", "##출"], len(OLD): ["금리", "##는"]}
    for row, pieces in parts.items():
        mean = old[WORDS][[OLD.index(piece) for piece in pieces]].mean(0)
        np.testing.assert_allclose(new[WORDS][row], mean, rtol=1e-6, atol=1e-7)
    assert load_tokenizer(tmp_path / "new").tokenize("대출 금리는") == ["대출", "금리는"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("    ")] == [
        ["kept", "58"], ["averaged", "2"], ["dropped", "1"], ["filled", "1"], ["appended", "1"],
        ["known", "1"],
    ]  # fmt: skip


def test_more_words_than_spare_rows(bert_dir, tmp_path):
    words = [f"은행{chr(0xAC00 + i)}" for i in range(50)]
    (tmp_path / "words.txt").write_text("\n".join(words))
    new = adapt(bert_dir, tmp_path / "new", add_tokens=tmp_path / "words.txt")
    assert new[WORDS].shape == (len(OLD) + 49, 32) and new[BIAS].shape == (len(OLD) + 49,)
    config = json.loads((tmp_path / "new" / "bert_config.json").read_text())
    assert config["vocab_size"] == len(OLD) + 49


@pytest.mark.parametrize("method", ("repeat", "interpolate"))
def test_positions(model_dir, kind, tmp_path, method, capsys):
    """From the 24 that were trained; repeated, they leave a text of their length as it was."""
    old = read(model_dir)
    new = adapt(model_dir, tmp_path / "new", max_position_embeddings=60, new_positions=method)
    trained, table = old[POSITIONS][:24], new[POSITIONS]
    assert table.shape[0] == 60
    if method == "repeat":
        np.testing.assert_array_equal(table, np.concatenate([trained, trained, trained[:12]]))
    else:
        np.testing.assert_array_equal(table[[0, -1]], trained[[0, -1]])
        share = 10 * 23 / 59 - 3  # between the old positions 3 and 4
        by_hand = (1 - share) * trained[3] + share * trained[4]
        np.testing.assert_allclose(table[10], by_hand, rtol=1e-5, atol=1e-7)
    for name in set(new) - {POSITIONS}:
        np.testing.assert_array_equal(new[name], old[name], err_msg=name)
    before, after = (outputs(folder, kind, TEXT)[0] for folder in (model_dir, tmp_path / "new"))
    difference = max(np.abs(after[token] - logits).max() for token, logits in before.items())
    assert (difference < 1e-6) == (method == "repeat")
    assert ModelFolder(str(tmp_path / "new")).trained_positions == 24
    done = {"repeat": "repeated", "interpolate": "interpolated"}[method]
    assert f"positions: 32 -> 60, {done} from the 24 that were" in capsys.readouterr().out


def test_positions_that_were_not_trained(bert_dir, tmp_path, capsys):
    """As many as the model has: those after the 24 that were trained become copies."""
    old, new = read(bert_dir), adapt(bert_dir, tmp_path / "new", max_position_embeddings=32)
    np.testing.assert_array_equal(new[POSITIONS][:24], old[POSITIONS][:24])
    np.testing.assert_array_equal(new[POSITIONS][24:], old[POSITIONS][:8])
    assert np.abs(new[POSITIONS][24:] - old[POSITIONS][24:]).max() > 0.01
    assert "positions: 32 -> 32, repeated from the 24" in capsys.readouterr().out


def test_positions_of_a_released_model(bert_dir, tmp_path, capsys):
    """Nothing says how many were trained: all of them, and the result says so."""
    (bert_dir / "pretraining.json").unlink()
    (bert_dir / "vocab.txt").unlink()  # the vocabulary stays, so none is needed
    (bert_dir / "tokenizer_config.json").unlink()
    old, new = read(bert_dir), adapt(bert_dir, tmp_path / "new", max_position_embeddings=40)
    np.testing.assert_array_equal(new[POSITIONS][32:], old[POSITIONS][:8])
    assert ModelFolder(str(tmp_path / "new")).trained_positions == 32
    argv = [f"--model_dir={bert_dir}", f"--output_dir={tmp_path}/out"]
    assert main(["adapt_checkpoint", *argv, "--max_position_embeddings=32"]) == 1
    assert "above the model's. Received: 32, the model has 32" in capsys.readouterr().err


def test_an_encoder_without_a_table_of_positions():
    with pytest.raises(InputError, match="must have position embeddings"):
        adapted_arrays(None, None, {WORDS: WORDS}, positions=40, trained=24)


def test_an_encoder_without_heads(bert_dir, tmp_path):
    drop_weights(bert_dir / "model.ckpt-3", "cls/")
    new = adapt(bert_dir, tmp_path / "new", tokenizer_dir=write_tokenizer(tmp_path / "v", NEW))
    assert new[WORDS].shape == (len(NEW), 32) and not any("cls/" in name for name in new)


KEPT_HEADS = {
    "albert": {"masked_lm_logits", "next_sentence_logits"},
    "bert_erf": {"masked_lm_logits", "next_sentence_logits"},
    "electra_small": {"discriminator_logits"},
    "roberta": {"masked_lm_logits"},
}


@pytest.mark.parametrize("name", KEPT_HEADS)
def test_models_of_transformers(name, tmp_path):
    """Their folders are read, ours is written; a text of the old length has its old outputs."""
    source, new = TEST_DATA / "transformers" / name, tmp_path / "new"
    shutil.copytree(source, tmp_path / "old")
    vocabulary = write_tokenizer(tmp_path / "v", NEW)
    before = load_folder(str(source), tokenizer=load_tokenizer(vocabulary))
    positions = before.config.max_position_embeddings
    adapt(tmp_path / "old", new, max_position_embeddings=positions + 9)
    after = load_folder(str(new))
    assert after.config == dataclasses.replace(before.config, max_position_embeddings=positions + 9)
    ids = np.random.default_rng(0).integers(5, before.config.vocab_size, (2, positions))
    inputs = {"input_ids": ids, "masked_lm_positions": np.array([[1, 4], [2, 3]])}
    expected, found = before.model(inputs), after.model(inputs)
    # A head that the folder lacks is new in both.
    kept = {*before.head_outputs()}
    assert kept == KEPT_HEADS[name]
    for key in kept:
        np.testing.assert_allclose(found[key], expected[key], atol=1e-6, rtol=0, err_msg=key)
    outputs = [m.model.encoder(inputs)["sequence_output"] for m in (before, after)]
    np.testing.assert_allclose(*outputs, atol=1e-6, rtol=0)
    # Its tokenizer is not there, so its vocabulary cannot be left.
    argv = [f"--{name}_dir={tmp_path}/{at}" for name, at in (("model", "old"), ("output", "out"))]
    argv.append(f"--tokenizer_dir={vocabulary}")
    assert main(["adapt_checkpoint", *argv]) == 1
    write_tokenizer(tmp_path / "old", OLD)
    assert main(["adapt_checkpoint", *argv]) == 0
    assert load_folder(str(tmp_path / "out")).config.vocab_size == len(NEW)


def test_a_fine_tuned_model_of_transformers(tmp_path):
    """The task, which config.json names, is in the folder that is written."""
    source, new = TEST_DATA / "transformers" / "bert_classifier", tmp_path / "new"
    before = load_folder(str(source))
    adapt(source, new, max_position_embeddings=before.config.max_position_embeddings + 9)
    after = load_folder(str(new))
    assert (after.task, after.labels) == ("classification", before.labels)
    inputs = {"input_ids": np.random.default_rng(0).integers(5, 61, (2, 9))}
    expected = before.model(inputs)["logits"]
    np.testing.assert_allclose(after.model(inputs)["logits"], expected, atol=1e-6, rtol=0)


def test_a_head_that_no_model_has():
    """ELECTRA's for sequences, whose names open_huggingface leaves as they are."""
    arrays = CheckpointArrays("x", {"classifier.dense.weight": [32, 32]}, None)
    with pytest.raises(InputError, match="this project has. Received: classifier.dense.weight"):
        adapted_arrays(arrays, BertConfig(vocab_size=60), GOOGLE_NAMES, positions=600)


@pytest.mark.slow
def test_training_goes_on(bert_dir, tmp_path):
    """Pre-training, then fine-tuning, on rows longer than the old model could take."""
    (tmp_path / "words.txt").write_text("대출\n예금\n")
    adapted = tmp_path / "adapted"
    adapt(bert_dir, adapted, add_tokens=tmp_path / "words.txt", max_position_embeddings=48)
    (adapted / "finetuning.json").unlink()
    job = PretrainingJob(tmp_path, **NO_DROPOUT)
    flags = {"bert_config_file": None, "model_dir": adapted, "num_train_steps": 2}
    assert job.run(**flags) == 0
    trained = read(job.output)
    assert trained[WORDS].shape == (60, 32) and trained["global_step"] == 2
    # It went on from these weights: two updates with a rate of 0.01 move nothing far.
    start = read(adapted)
    assert 0 < np.abs(trained[WORDS] - start[WORDS]).max() < 0.1
    rows = [("대출 학교에 " * 12, i % 2) for i in range(8)]
    data = write_splits(tmp_path / "data", ("text", "label"), rows, train=(0, 4), dev=(4, 8))
    argv = [f"--output_dir={tmp_path}/tuned", f"--data_dir={data}", "--xla=off", "--do_train"]
    argv += [f"--model_dir={job.output}", "--task_name=tsv", "--train_step=1"]
    assert classifier.main(["run", *argv, "--max_seq_length=40", "--train_batch_size=4"]) == 0


@pytest.mark.parametrize(
    "flags, words",
    (
        ({}, ("one of --tokenizer_dir, --add_tokens, --max_position_embeddings",)),
        ({"tokenizer_dir": "{}/model"}, ("another tokenizer than the model's", "the same")),
        ({"max_position_embeddings": 31}, ("at least the model's", "31, the model has 32")),
        ({"tokenizer_dir": "{}/v", "output_dir": "{}/model"}, ("without a model", "holds one")),
        (
            {"tokenizer_dir": "{}/v", "init_checkpoint": "{}/x"},
            ("--init_checkpoint", "nothing there"),
        ),
        ({"add_tokens": "{}/blank.txt"}, ("blank.txt must hold a token",)),
        ({"tokenizer_dir": "{}/broken"}, ("a token must be on one line", "line 6")),
    ),
)
def test_refusals(bert_dir, tmp_path, capsys, flags, words):
    write_tokenizer(tmp_path / "v", NEW)
    write_tokenizer(tmp_path / "broken", [*SPECIAL, "[PAD]"])
    (tmp_path / "words.txt").write_text("대출\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    flags = {"model_dir": bert_dir, "output_dir": tmp_path / "out", **flags}
    argv = [f"--{name}={str(value).format(tmp_path)}" for name, value in flags.items()]
    assert main(["adapt_checkpoint", *argv]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words), line
    assert not (tmp_path / "out").exists()


def test_models_that_do_not_fit(bert_dir, tmp_path, capsys):
    """The configuration, the checkpoint, the tokenizer."""
    vocabulary = write_tokenizer(tmp_path / "v", NEW)

    def refusal():
        argv = [f"--model_dir={bert_dir}", f"--output_dir={tmp_path}/out"]
        assert main(["adapt_checkpoint", *argv, f"--tokenizer_dir={vocabulary}"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    config = bert_dir / "bert_config.json"
    config.write_text(json.dumps({**SIZES, "vocab_size": 61}))
    assert f"{WORDS} [61, 32]. Received: [60, 32]" in refusal()
    config.write_text(json.dumps({**SIZES, "vocab_size": 7}))
    assert "vocab_size=7" in refusal() and "15 entries" in refusal()
    config.write_text(json.dumps(SIZES))
    for name in ("vocab.txt", "tokenizer_config.json", "pretraining.json", "finetuning.json"):
        (bert_dir / name).unlink()
    assert "must hold the model's tokenizer" in refusal()
    assert not (tmp_path / "out" / "model.ckpt.index").exists()
