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


def arrays_of(model):
    """The model's weights by Google's names."""
    return {name: variable.numpy() for name, variable in google_variables(model).items()}


@pytest.mark.parametrize(
    "kind, change, found",
    (
        *(  # inside another model
            (kind, lambda name, prefix=prefix: f"{prefix}{name}", f"{prefix}bert/")
            for kind in ("bert", "albert")
            for prefix in ("module/", "model/encoder_1/")
        ),
        ("bert", lambda name: name.replace("bert/", "koelectra/"), "koelectra/"),
        # Beside an encoder without a name are heads, moments and the step, which have none either.
        ("bert", lambda name: name.removeprefix("bert/"), ""),
    ),
)
def test_an_encoder_under_another_name(tmp_path, kind, change, found):
    model = write_model(tmp_path / "m", kind)
    arrays = arrays_of(model)
    stored = {change(name): value for name, value in arrays.items()}
    stored |= {f"{name}/adam_m": value for name, value in stored.items()}
    others = {"output_weights": np.zeros((2, 16), np.float32), "global_step": np.int64(5)}
    others["skipped_steps"] = np.int64(0)  # of a training here
    path = str(tmp_path / "model.ckpt-5")
    write_arrays(path, {**stored, **others})
    for variable in model.trainable_variables:
        variable.assign(tf.zeros_like(variable))
    with pytest.warns(UserWarning, match=f"begin with '{found}' there, which is read as 'bert/'"):
        report = load_google_checkpoint(model, path)
        assert not load_google_checkpoint(model.encoder, path).missing
    assert len(report.loaded) == len(arrays) and not report.missing
    for name, variable in google_variables(model).items():
        np.testing.assert_array_equal(variable, arrays[name])


def test_an_electra_without_a_name(tmp_path):
    """The configuration beside it says that it is none of BERT's; heads have their names."""
    model = write_model(tmp_path / "m", "electra", names=["generator/"])
    expected = load_model(tmp_path / "m").embed(["가 나다", "라"])
    arrays = arrays_of(model)
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
    arrays = arrays_of(model)
    path = str(tmp_path / "m" / "model.ckpt-9")
    write_arrays(path, {f"{p}/{name}": v for p in "ab" for name, v in arrays.items()})
    for load in (lambda: load_google_checkpoint(model, path), lambda: load_model(path)):
        with pytest.raises(InputError, match="Received: none of the .*, but a/bert/embeddings"):
            load()


def test_the_nearest_names_of_missing_variables(tmp_path):
    model = write_model(tmp_path / "m")
    arrays = arrays_of(model)
    arrays["bert/embeddings/layer_normalization/gamma"] = arrays.pop(
        "bert/embeddings/LayerNorm/gamma"
    )
    path = str(tmp_path / "model.ckpt-1")
    write_arrays(path, arrays)
    match = "LayerNorm/gamma: missing .the file has bert/embeddings/layer_normalization/gamma."
    with pytest.raises(InputError, match=match):
        load_google_checkpoint(model, path)
    assert "bert/embeddings/layer_normalization/gamma" in google_arrays(path).shapes
