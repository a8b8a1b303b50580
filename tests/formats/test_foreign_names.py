"""Checkpoints whose names have another prefix, none, or a word that no model here has."""

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.checkpoint import (
    google_arrays,
    google_variables,
    load_google_checkpoint,
    write_arrays,
)
from korean_bert import load_model
from tests.support.models.model_folders import write_model


@pytest.mark.parametrize("kind", ("bert", "albert"))
@pytest.mark.parametrize("prefix", ("module/", "model/encoder_1/"))
def test_a_checkpoint_inside_another_model(tmp_path, kind, prefix):
    model = write_model(tmp_path / "m", kind)
    arrays = {name: v.numpy() for name, v in google_variables(model).items()}
    path = str(tmp_path / "model.ckpt-1")
    write_arrays(path, {f"{prefix}{name}": value for name, value in arrays.items()})
    for variable in model.trainable_variables:
        variable.assign(tf.zeros_like(variable))
    with pytest.warns(UserWarning, match=f"begin with '{prefix}bert/' there, which is read as 'b"):
        report = load_google_checkpoint(model, path)
    assert len(report.loaded) == len(arrays)
    for name, variable in google_variables(model).items():
        np.testing.assert_array_equal(variable, arrays[name])


def test_an_encoder_under_another_name(tmp_path):
    model = write_model(tmp_path / "m").encoder
    arrays = {name: v.numpy() for name, v in google_variables(model).items()}
    path = str(tmp_path / "model.ckpt-1")
    write_arrays(path, {name.replace("bert/", "koelectra/"): v for name, v in arrays.items()})
    with pytest.warns(UserWarning, match="begin with 'koelectra/'"):
        assert len(load_google_checkpoint(model, path).missing) == 0


def test_an_encoder_without_a_name(tmp_path):
    """Beside its names are those of heads, moments and the step, which have no prefix anywhere."""
    model = write_model(tmp_path / "m")
    arrays = {name: v.numpy() for name, v in google_variables(model).items()}
    stored = {name.removeprefix("bert/"): value for name, value in arrays.items()}
    stored |= {f"{name}/adam_m": value for name, value in stored.items()}
    heads = {"output_weights": np.zeros((2, 16), np.float32), "global_step": np.int64(5)}
    heads["skipped_steps"] = np.int64(0)  # of a training here
    path = str(tmp_path / "model.ckpt-5")
    write_arrays(path, {**stored, **heads})
    with pytest.warns(UserWarning, match="begin with '' there, which is read as 'bert/'"):
        report = load_google_checkpoint(model, path)
    assert len(report.loaded) == len(arrays) and not report.missing
    for name, variable in google_variables(model).items():
        np.testing.assert_array_equal(variable, arrays[name])


def test_an_electra_without_a_name(tmp_path):
    """The configuration beside it says that it is none of BERT's; heads have their names."""
    model = write_model(tmp_path / "m", "electra", names=["generator/"])
    expected = load_model(tmp_path / "m").embed(["가 나다", "라"])
    arrays = {name: v.numpy() for name, v in google_variables(model).items()}
    stored = {name.removeprefix("electra/"): value for name, value in arrays.items()}
    assert "generator_predictions/output_bias" in stored
    write_arrays(str(tmp_path / "m" / "model.ckpt-3"), stored)
    with pytest.warns(UserWarning, match="begin with '' there, which is read as 'electra/'"):
        loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.embed(["가 나다", "라"]), expected)
    assert not loaded.loaded.missing


def test_two_models_in_one_file_are_not_mixed(tmp_path):
    """Nor if heads and the pooler may be missing, so that not every variable is needed."""
    model = write_model(tmp_path / "m")
    arrays = {name: v.numpy() for name, v in google_variables(model).items()}
    path = str(tmp_path / "m" / "model.ckpt-9")
    write_arrays(path, {f"{p}/{name}": v for p in "ab" for name, v in arrays.items()})
    for load in (lambda: load_google_checkpoint(model, path), lambda: load_model(path)):
        with pytest.raises(InputError, match="Received: none of the .*, but a/bert/embeddings"):
            load()


def test_the_nearest_names_of_missing_variables(tmp_path):
    model = write_model(tmp_path / "m")
    arrays = {name: v.numpy() for name, v in google_variables(model).items()}
    arrays["bert/embeddings/layer_normalization/gamma"] = arrays.pop(
        "bert/embeddings/LayerNorm/gamma"
    )
    path = str(tmp_path / "model.ckpt-1")
    write_arrays(path, arrays)
    match = "LayerNorm/gamma: missing .the file has bert/embeddings/layer_normalization/gamma."
    with pytest.raises(InputError, match=match):
        load_google_checkpoint(model, path)
    assert "bert/embeddings/layer_normalization/gamma" in google_arrays(path).shapes
