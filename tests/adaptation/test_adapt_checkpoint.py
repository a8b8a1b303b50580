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
from model_formats.adaptation.positions import METHODS
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from run_scripts import classifier
from tests.support.models.adapted_models import (
    BIAS,
    NEW,
    OLD,
    POSITIONS,
    WORDS,
    adapt,
    read,
    run,
    weights,
    write_model,
)
from tests.support.models.model_folders import drop_weights
from tests.support.paths import TEST_DATA
from tests.support.programs import NO_DROPOUT, PretrainingJob, one_line
from tests.support.task_data import write_splits
from tests.support.tiny_models import SIZES
from tests.support.vocabularies import SPECIAL, write_tokenizer
from tokenization import load_tokenizer


@pytest.fixture
def bert_dir(tmp_path):
    return write_model(tmp_path / "model")


@pytest.fixture
def vocabulary(tmp_path):
    return write_tokenizer(tmp_path / "v", NEW)


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_every_variable(kind, vocabulary, tmp_path, capsys):
    """New rows by hand, the rest bit-equal; moments and counters do not come along."""
    old = weights(write_model(tmp_path / "model", kind))
    new = adapt(tmp_path / "model", tmp_path / "new", tokenizer_dir=vocabulary)
    np.testing.assert_equal({**new, WORDS: 0, BIAS: 0}, {**old, WORDS: 0, BIAS: 0})
    rows = {row: OLD.index(token) for row, token in enumerate(NEW) if token in OLD}
    loan, parts = NEW.index("대출"), [OLD.index("대"), OLD.index("##출")]
    for name in (WORDS, BIAS):
        assert new[name].shape == (len(NEW), *old[name].shape[1:])
        np.testing.assert_array_equal(new[name][[*rows]], old[name][[*rows.values()]])
        np.testing.assert_allclose(new[name][loan], old[name][parts].mean(0), rtol=1e-6, atol=1e-7)
    printed = capsys.readouterr().out
    assert "대출 = 대 + ##출" in printed and "vocabulary: 15 tokens -> 14" in printed
    report = json.loads((tmp_path / "new" / "adaptation.json").read_text())["vocabulary"]
    counts = {name: report[name]["count"] for name in ("kept", "averaged", "random", "dropped")}
    assert counts == {"kept": 11, "averaged": 1, "random": 2, "dropped": 4}
    assert report["random"]["examples"] == ["예금", "상환"]
    record = json.loads((tmp_path / "new" / "finetuning.json").read_text())
    assert record == {"task": "classification", "task_name": "tsv"}
    assert ModelFolder(str(tmp_path / "new")).trained_positions == 24


def test_random_rows_for_comparison(bert_dir, vocabulary, tmp_path):
    mean, random, again, other = (
        adapt(bert_dir, tmp_path / str(i), tokenizer_dir=vocabulary, **flags)[WORDS]
        for i, flags in enumerate(
            ({}, *[{"new_rows": "random"}] * 2, {"new_rows": "random", "random_seed": 1})
        )
    )
    kept, loan = [i for i, token in enumerate(NEW) if token in OLD], NEW.index("대출")
    np.testing.assert_array_equal(mean[kept], random[kept])
    np.testing.assert_array_equal(random, again)
    for table in (mean, other):
        assert np.abs(table[loan] - random[loan]).max() > 0.01


def test_added_tokens(bert_dir, tmp_path, capsys):
    """One takes the unused row, one a spare row of the table, whose size stays."""
    (tmp_path / "words.txt").write_text("대출\n금리는\n금리\n")
    old = read(bert_dir)[WORDS]
    new = adapt(bert_dir, tmp_path / "new", add_tokens=tmp_path / "words.txt")[WORDS]
    assert new.shape == old.shape == (60, 32)
    parts = {5: ["대", "##출"], len(OLD): ["금리", "##는"]}
    assert np.flatnonzero((new != old).any(1)).tolist() == [*parts]
    for row, pieces in parts.items():
        mean = old[[OLD.index(piece) for piece in pieces]].mean(0)
        np.testing.assert_allclose(new[row], mean, rtol=1e-6, atol=1e-7)
    assert load_tokenizer(tmp_path / "new").tokenize("대출 금리는") == ["대출", "금리는"]
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]
    counts = ("kept 58", "averaged 2", "dropped 1", "filled 1", "appended 1", "known 1")
    assert [" ".join(line.split()[:2]) for line in lines] == [*counts]


def test_more_words_than_spare_rows(bert_dir, tmp_path):
    words = [f"은행{chr(0xAC00 + i)}" for i in range(50)]
    (tmp_path / "words.txt").write_text("\n".join(words))
    new = adapt(bert_dir, tmp_path / "new", add_tokens=tmp_path / "words.txt")
    size = len(OLD) + 49
    assert new[WORDS].shape == (size, 32) and new[BIAS].shape == (size,)
    assert ModelFolder(str(tmp_path / "new")).config.vocab_size == size


@pytest.mark.parametrize(
    "kind, method, wanted",
    [("bert", "repeat", 60), ("albert", "interpolate", 60), ("bert", "repeat", 32)],
)
def test_positions(kind, method, wanted, tmp_path, capsys):
    """From the 24 that were trained, also if the model has as many as are wanted."""
    old = weights(write_model(tmp_path / "model", kind))
    flags = {"max_position_embeddings": wanted, "new_positions": method}
    new = adapt(tmp_path / "model", tmp_path / "new", **flags)
    table = METHODS[method](old[POSITIONS][:24], wanted)
    np.testing.assert_equal(new, {**old, POSITIONS: table})
    assert ModelFolder(str(tmp_path / "new")).trained_positions == 24
    done = {"repeat": "repeated", "interpolate": "interpolated"}[method]
    assert f"positions: 32 -> {wanted}, {done} from the 24 that were" in capsys.readouterr().out


def test_positions_of_a_released_model(bert_dir, tmp_path, capsys):
    """Nothing says how many were trained: all of them, and the result says so."""
    for name in ("pretraining.json", "vocab.txt", "tokenizer_config.json"):
        (bert_dir / name).unlink()  # the vocabulary stays, so none is needed
    old, new = read(bert_dir), adapt(bert_dir, tmp_path / "new", max_position_embeddings=40)
    np.testing.assert_array_equal(new[POSITIONS][32:], old[POSITIONS][:8])
    assert ModelFolder(str(tmp_path / "new")).trained_positions == 32
    assert run(bert_dir, tmp_path / "out", max_position_embeddings=32) == 1
    assert "above the model's. Received: 32, the model has 32" in one_line(capsys)


def test_an_encoder_without_heads(bert_dir, vocabulary, tmp_path):
    drop_weights(bert_dir / "model.ckpt-3", "cls/")
    new = adapt(bert_dir, tmp_path / "new", tokenizer_dir=vocabulary)
    assert new[WORDS].shape == (len(NEW), 32) and not any("cls/" in name for name in new)


KEPT_HEADS = {
    "albert": {"masked_lm_logits", "next_sentence_logits"},
    "bert_erf": {"masked_lm_logits", "next_sentence_logits"},
    "bert_classifier": {"logits"},
    "electra_small": {"discriminator_logits"},
    "roberta": {"masked_lm_logits"},
}


@pytest.mark.parametrize("name", KEPT_HEADS)
def test_models_of_transformers(name, vocabulary, tmp_path):
    """Their folders are read, ours is written; a text of the old length has its old outputs."""
    source = shutil.copytree(TEST_DATA / "transformers" / name, tmp_path / "old")
    before = load_folder(str(source), tokenizer=load_tokenizer(vocabulary))
    positions = before.config.max_position_embeddings
    adapt(source, tmp_path / "new", max_position_embeddings=positions + 9)
    after = load_folder(str(tmp_path / "new"))
    assert after.config == dataclasses.replace(before.config, max_position_embeddings=positions + 9)
    assert (after.task, after.labels) == (before.task, before.labels)
    ids = np.random.default_rng(0).integers(5, before.config.vocab_size, (2, positions))
    inputs = {"input_ids": ids, "masked_lm_positions": np.array([[1, 4], [2, 3]])}
    kept = {"logits"} if before.labels else {*before.head_outputs()}
    assert kept == KEPT_HEADS[name]  # what it lacks is new in both
    expected, found = ({**m.model.encoder(inputs), **m.model(inputs)} for m in (before, after))
    for key in ("sequence_output", *kept):
        np.testing.assert_allclose(found[key], expected[key], atol=1e-6, rtol=0, err_msg=key)
    # Its tokenizer is not there, so its vocabulary cannot be left.
    assert run(source, tmp_path / "out", tokenizer_dir=vocabulary) == 1
    write_tokenizer(source, OLD)
    assert run(source, tmp_path / "out", tokenizer_dir=vocabulary) == 0
    assert load_folder(str(tmp_path / "out")).config.vocab_size == len(NEW)


def test_what_no_model_has():
    with pytest.raises(InputError, match="must have position embeddings"):
        adapted_arrays(None, None, {WORDS: WORDS}, positions=40, trained=24)
    # ELECTRA's head for sequences, whose names open_huggingface leaves as they are.
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
    assert job.run(bert_config_file=None, model_dir=adapted, num_train_steps=2) == 0
    trained, start = read(job.output), read(adapted)
    assert trained[WORDS].shape == (60, 32) and trained["global_step"] == 2
    # It went on from these weights: two updates with a rate of 0.01 move nothing far.
    assert 0 < np.abs(trained[WORDS] - start[WORDS]).max() < 0.1
    rows = [("대출 학교에 " * 12, i % 2) for i in range(8)]
    data = write_splits(tmp_path / "data", ("text", "label"), rows, train=(0, 4), dev=(4, 8))
    argv = [f"--output_dir={tmp_path}/tuned", f"--data_dir={data}", "--xla=off", "--do_train"]
    argv += [f"--model_dir={job.output}", "--task_name=tsv", "--train_step=1"]
    assert classifier.main(["run", *argv, "--max_seq_length=40", "--train_batch_size=4"]) == 0


@pytest.mark.parametrize(
    "flags, words",
    [
        ({}, ["one of --tokenizer_dir, --add_tokens, --max_position_embeddings"]),
        ({"tokenizer_dir": "{}/model"}, ["another tokenizer than the model's", "the same"]),
        ({"max_position_embeddings": 31}, ["at least the model's", "31, the model has 32"]),
        ({"tokenizer_dir": "{}/v", "output_dir": "{}/model"}, ["without a model", "holds one"]),
        (
            {"tokenizer_dir": "{}/v", "init_checkpoint": "{}/x"},
            ["--init_checkpoint", "nothing there"],
        ),
        ({"add_tokens": "{}/blank.txt"}, ["blank.txt must hold a token"]),
        ({"tokenizer_dir": "{}/broken"}, ["a token must be on one line", "line 6"]),
    ],
)
def test_refusals(bert_dir, vocabulary, tmp_path, capsys, flags, words):
    write_tokenizer(tmp_path / "broken", [*SPECIAL, "[PAD]"])
    (tmp_path / "blank.txt").write_text("\n\n")
    flags = {name: str(value).format(tmp_path) for name, value in flags.items()}
    assert run(bert_dir, **{"output": tmp_path / "out", **flags}) == 1
    line = one_line(capsys)
    assert all(word in line for word in words), line
    assert not (tmp_path / "out").exists()


def test_models_that_do_not_fit(bert_dir, vocabulary, tmp_path, capsys):
    """The configuration, the checkpoint, the tokenizer."""

    def refusal():
        assert run(bert_dir, tmp_path / "out", tokenizer_dir=vocabulary) == 1
        return one_line(capsys)

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
