"""An ELECTRA's two networks are exported for transformers and for Google's code."""

import numpy as np
import pytest

from bert_common.errors import InputError
from bert_tf.checkpoint import google_arrays
from korean_bert import load_model
from model_formats.electra_generator import generator_alone
from model_formats.load_folder import load_folder
from model_formats.transformers_files.electra_classifier import as_two_layers
from run_scripts.tools import fill_masks
from tests.support.models.model_folders import export_folder, write_folder
from tests.support.tiny_models import weights_of

BOTH = ("generator/", "discriminator_predictions/")


def test_more_classes_than_the_head_has_room_for():
    with pytest.raises(InputError, match="must have two hidden units a class. Received: 5 classes"):
        as_two_layers(np.zeros((5, 8), np.float32), np.zeros(5, np.float32))


def test_google_s_names(tmp_path):
    """The folder for google-research/electra has both networks; tanh is refused, erf is not."""
    write_folder(tmp_path / "in", "electra", names=BOTH)
    export_folder(tmp_path / "in", tmp_path / "out", "google")
    names = set(google_arrays(str(tmp_path / "out" / "electra_model.ckpt")).shapes)
    # Of google-research/electra's graph, as run_pretraining.py and modeling.py name them.
    assert names >= {
        "electra/embeddings/word_embeddings", "electra/embeddings/LayerNorm/gamma",
        "electra/embeddings_project/kernel", "electra/encoder/layer_1/output/LayerNorm/beta",
        "generator/embeddings_project/bias", "generator_predictions/output_bias",
        "generator/encoder/layer_0/attention/self/query/kernel",
        "generator_predictions/dense/kernel", "generator_predictions/LayerNorm/gamma",
        "discriminator_predictions/dense/kernel", "discriminator_predictions/dense_1/bias",
    }  # fmt: skip
    assert not any("bert" in name or "cls" in name for name in names)
    one, two = (weights_of(load_folder(str(tmp_path / name)).model) for name in ("in", "out"))
    np.testing.assert_equal(two, one)
    write_folder(tmp_path / "tanh", "electra", sizes={"hidden_act": "gelu"}, names=BOTH)
    export_folder(tmp_path / "tanh", tmp_path / "out", "google", status=1)


def test_masks_are_filled_by_the_generator(tmp_path, capsys):
    """Of the folder with both networks, by program and in Python; and of the generator alone."""
    write_folder(tmp_path / "in", "electra", names=BOTH)
    export_folder(tmp_path / "in", tmp_path / "out", "huggingface", "--generator")
    text = "the book [MASK] red"
    one, two = (load_model(tmp_path / name).fill_mask(text, max_pieces=1) for name in ("in", "out"))
    assert [guess.text for guess in one[0]] == [guess.text for guess in two[0]]
    assert one[0][0].probability == pytest.approx(two[0][0].probability, abs=1e-5)
    capsys.readouterr()
    argv = [f"--model_dir={tmp_path}/in", f"--text={text}", "--guesses=1"]
    assert fill_masks.main(["fill_masks", *argv]) == 0
    share = f"{100 * one[0][0].probability:.0f}%"
    assert share in capsys.readouterr().out
    # Its vectors are the discriminator's.
    assert load_model(tmp_path / "in").embed("the book").shape == (32,)


def test_a_discriminator_alone_fills_no_masks(tmp_path):
    write_folder(tmp_path / "in", "electra", names=BOTH)
    model = load_model(export_folder(tmp_path / "in", tmp_path / "out"))
    with pytest.raises(InputError, match="guesses need a pre-trained model"):
        model.fill_mask("the book [MASK] red")
    with pytest.raises(InputError, match="--generator needs an ELECTRA with both networks"):
        generator_alone(model.loaded)
