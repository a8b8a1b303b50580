"""A TF1 checkpoint goes through this project unchanged: names, shapes, every bit."""

import json
import os
import re
import shutil

import pytest
import tensorflow as tf

from bert_common.errors import InputError
from model_formats.google import export
from model_formats.load_folder import load_folder
from tests.support.golden import GOLDEN
from tests.support.models.model_folders import drop_weights, write_folder
from tests.support.models.released_models import write_albert, write_bert
from tests.support.paths import TEST_DATA

TRAINING = re.compile(r".*/adam_[mv]|global_step")  # what is no weight


def variables(prefix):
    """Name -> array of a checkpoint, read as programs of TensorFlow 1 read it."""
    reader = tf.compat.v1.train.NewCheckpointReader(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def weights(prefix):
    found = variables(prefix)
    return {name: array for name, array in found.items() if not TRAINING.fullmatch(name)}


def through(folder, output, checkpoint=None):
    """Loads a folder and exports it; returns the path of the new checkpoint."""
    output.mkdir()
    loaded = load_folder(str(folder), checkpoint and str(checkpoint))
    export(loaded, str(output))
    return output / loaded.encoder.checkpoint


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys() and len(found) > 10
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("folder, name", [
    ("checkpoints/keras_bert_toy", "bert_model.ckpt"),
    ("golden/bert_relu", "model.ckpt-5"),
    ("golden/albert_relu_e_eq_h", "model.ckpt-5"),
])  # fmt: skip
def test_checkpoints_of_others(folder, name, tmp_path):
    source = TEST_DATA / folder
    exported = through(source, tmp_path / "out", source / name)
    assert_same_bits(variables(exported), weights(source / name))
    # And once more from what was exported.
    assert_same_bits(variables(through(tmp_path / "out", tmp_path / "2")), variables(exported))


@pytest.mark.parametrize("folder", ["head_albert_classifier", "head_bert_classifier"])
def test_a_fine_tuned_checkpoint_of_google_s(folder, tmp_path):
    """Its folder says which task it is for."""
    shutil.copytree(GOLDEN / folder, tmp_path / "in")
    classes = variables(tmp_path / "in" / "model.ckpt-0")["output_bias"].size
    settings = {
        "task_name": "tsv", "task_type": "single_label", "feature_layers": None,
        "labels": ",".join(map(str, range(classes))),
    }  # fmt: skip
    (tmp_path / "in" / "finetuning.json").write_text(json.dumps(settings))
    exported = through(tmp_path / "in", tmp_path / "out")
    expected = weights(tmp_path / "in" / "model.ckpt-0")
    assert "output_weights" in expected
    assert_same_bits(variables(exported), expected)
    record = json.loads((tmp_path / "out" / "finetuning.json").read_text())
    assert record == {"task": "classification", **settings}


@pytest.mark.parametrize("write", [write_bert, write_albert])
def test_released_folders(write, tmp_path):
    """All that Google's programs open is there, under the released names."""
    source = write(tmp_path / "in" / "uncased")
    exported = through(source, tmp_path / "out")
    assert_same_bits(variables(exported), variables(source / exported.name))
    kind = "bert" if write is write_bert else "albert"
    found = json.loads((tmp_path / "out" / f"{kind}_config.json").read_text())
    given = json.loads((source / f"{kind}_config.json").read_text())
    assert {name: given[name] for name in found if name in given}.items() <= found.items()
    vocabulary = {"bert": ("vocab.txt", "vocab.txt"), "albert": ("30k-clean.model", "spiece.model")}
    before, after = vocabulary[kind]
    assert (tmp_path / "out" / after).read_bytes() == (source / before).read_bytes()
    assert os.path.getsize(f"{exported}.meta") == 0  # which google-research/albert copies


def test_a_head_that_is_missing_stays_missing(tmp_path):
    source = write_albert(tmp_path / "in")
    drop_weights(source / "model.ckpt-best", "cls/")
    kept = variables(source / "model.ckpt-best")
    assert_same_bits(variables(through(source, tmp_path / "out")), kept)


def test_what_google_s_code_cannot_compute(tmp_path):
    for name, value, message in (
        ("hidden_act", "gelu_erf", "hidden_act must be .*Received: gelu_erf"),
        ("layer_norm_eps", 1e-5, "layer_norm_eps must be 1e-12"),
    ):
        write_folder(tmp_path / name, sizes={name: value})
        with pytest.raises(InputError, match=message):
            through(tmp_path / name, tmp_path / f"{name} out")
        assert not list((tmp_path / f"{name} out").iterdir())
    write_folder(tmp_path / "tanh", sizes={"hidden_act": "gelu_tanh"})
    through(tmp_path / "tanh", tmp_path / "3")
    assert json.loads((tmp_path / "3" / "bert_config.json").read_text())["hidden_act"] == "gelu"
