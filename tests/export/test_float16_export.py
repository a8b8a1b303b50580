"""Weights that an export for transformers stored as float16 serve every program in float32."""

import itertools
import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_common.errors import InputError
from bert_tf.checkpoint import google_arrays, write_arrays
from model_formats.huggingface import export as export_module
from model_formats.load_folder import load_folder
from model_formats.weights import as_float16
from run_scripts import classifier
from tests.support.crosses import slow
from tests.support.models.model_folders import drop_weights, export_folder, write_folder
from tests.support.programs import features, one_line
from tests.support.task_data import WORDS, write_splits
from tests.support.tiny_models import weights_of


def export(top, status=0):
    """Exports the model in the folder "in" to "out"."""
    flags = "huggingface", "--precision=float16"
    return export_folder(top / "in", top / "out", *flags, status=status)


@pytest.mark.parametrize(
    "kind, task",
    [
        *itertools.product(("bert", "albert"), ("pretraining", "ner", "multiple_choice")),
        ("electra", "classification"),  # whose head has two layers there
    ],
)
def test_the_weights_are_rounded_once(kind, task, tmp_path):
    write_folder(tmp_path / "in", kind, task)
    stored = load_file(export(tmp_path) / "model.safetensors")
    assert {array.dtype for array in stored.values()} == {np.dtype(np.float16)}
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["dtype"] == "float32"  # what transformers computes in
    before, after = (load_folder(str(tmp_path / name)) for name in ("in", "out"))
    original = weights_of(before.model)
    for name, array in weights_of(after.model).items():
        assert array.dtype == "float32"
        if name not in after.missing:
            rounded = original[name].astype(np.float16)
            np.testing.assert_array_equal(array, rounded.astype(np.float32), err_msg=name)
    assert after.trained_positions == before.trained_positions == 16


def test_a_value_that_float16_lacks(tmp_path, capsys):
    write_folder(tmp_path / "in")
    prefix = str(tmp_path / "in" / "model.ckpt-3")
    arrays = google_arrays(prefix)
    assert as_float16({"a": np.float32([65519])})["a"] == 65504  # the largest, to which it rounds
    for value in (65520.0, -1e6, np.nan):
        with pytest.raises(InputError, match="at most 65,504"):
            as_float16({"a": np.float32([1, value])})
    kept = {name: arrays.read(name) for name in arrays.shapes}
    kept["bert/pooler/dense/bias"][3] = np.nan
    write_arrays(prefix, kept)
    export(tmp_path, status=1)
    message = one_line(capsys)
    assert "must hold every weight, at most 65,504" in message
    assert "Received: nan in bert.pooler.dense.bias" in message
    assert os.listdir(tmp_path) == ["in"]


@pytest.mark.parametrize("head", ["both", *(slow(h) for h in ("no sentence head", "encoder"))])
def test_what_is_loaded_again_must_compute_the_same(head, tmp_path, monkeypatch):
    """Also where the folder has fewer outputs than the model."""
    write_folder(tmp_path / "in")
    dropped = {"both": "none", "no sentence head": "cls/seq", "encoder": "cls/"}[head]
    drop_weights(tmp_path / "in" / "model.ckpt-3", dropped)
    export(tmp_path)

    def damaged(arrays):
        return {name: array * np.float16(1.1) for name, array in as_float16(arrays).items()}

    monkeypatch.setattr(export_module, "as_float16", damaged)
    loaded = load_folder(str(tmp_path / "in"))
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="must compute what the model computes, up to 0.01"):
        export_module.export(loaded, str(tmp_path / "other"), precision="float16")


@pytest.mark.slow
def test_programs_compute_in_float32(tmp_path, capsys):
    """Features and fine-tuning, by the folder and by the file."""
    write_folder(tmp_path / "in")
    export(tmp_path)
    (tmp_path / "text.txt").write_text("the book is red.\n나는 학교에 갔다.\n")
    argv = (tmp_path / "text.txt", tmp_path / "x.npz", "--max_seq_length=16")
    expected, found = (features(*argv, f"--model_dir={tmp_path}/{name}") for name in ("in", "out"))
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() < 0.01  # as the weights are rounded
    weights = f"--init_checkpoint={tmp_path}/out/model.safetensors"
    np.testing.assert_array_equal(features(*argv, f"--model_dir={tmp_path}/in", weights), found)

    rows = [(" ".join(WORDS[i : i + 3]), ("yes", "no")[i % 2]) for i in range(6)]
    write_splits(tmp_path / "data", ("text", "label"), rows, train=(0, 6), dev=(0, 2))
    argv = ["x", f"--model_dir={tmp_path}/out", f"--data_dir={tmp_path}/data", "--task_name=tsv"]
    argv += [f"--output_dir={tmp_path}/tuned", "--max_seq_length=16", "--train_batch_size=2"]
    assert classifier.main([*argv, "--train_step=1", "--xla=off", "--do_train"]) == 0
    arrays = google_arrays(f"{tmp_path}/tuned/model.ckpt-1")
    name = "bert/embeddings/word_embeddings"
    tuned = arrays.read(name)
    stored = load_file(tmp_path / "out" / "model.safetensors")
    start = stored["bert.embeddings.word_embeddings.weight"].astype(np.float32)
    assert tuned.dtype == np.float32 and 0 < np.abs(tuned - start).max() < 0.01
