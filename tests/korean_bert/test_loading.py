"""What korean_bert names; every kind of folder and checkpoint becomes a model in Python."""

import json
import pickle
import shutil

import keras
import numpy as np
import pytest

import korean_bert
from bert_common.errors import InputError
from bert_tf.checkpoint import save_google_checkpoint
from bert_tf.checkpoint_files import BEST_FOLDER
from korean_bert import load_model
from model_formats.model_folder import REFERENCE_MODEL
from tests.support.models.model_folders import write_folder, write_model
from tests.support.models.released_models import WRITERS
from tests.support.paths import TEST_DATA, printed_by
from tests.support.refusals import refused
from tokenization import FullTokenizer

TEXT = "the book is red"

NAMES = [
    "load_model", "Model", "InputError", "FullTokenizer", "HuggingFaceTokenizer", "KoreanTokenizer",
    "SentencePieceTokenizer", "load_tokenizer", "save_tokenizer", "BertConfig", "BertModel",
    "PretrainingModel", "load_google_checkpoint", "AlbertConfig", "AlbertModel",
]  # fmt: skip


def test_every_name_is_there():
    """That they bring no TensorFlow in before they are used is in test_layering.py."""
    assert set(korean_bert.__all__) == set(NAMES) <= set(dir(korean_bert))
    assert [getattr(korean_bert, name).__name__ for name in NAMES] == NAMES
    with pytest.raises(AttributeError, match="no attribute 'load_models'"):
        korean_bert.load_models  # noqa: B018


def test_what_is_no_model(tmp_path):
    with refused("a model's folder must hold bert_config.json"):
        load_model(tmp_path)
    with refused("Received: ", "nowhere, nothing there"):
        load_model(tmp_path / "nowhere")


def test_without_an_argument_the_reference_model():
    model = load_model()
    assert model.loaded.folder.path == REFERENCE_MODEL and model.max_length == 512
    assert "bert, pretraining" in repr(model)
    assert load_model(f"{REFERENCE_MODEL}/model.safetensors").loaded.folder.path == REFERENCE_MODEL


def test_shipped_models_by_name_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vectors = load_model("reference_vectors")
    assert vectors.similarity("배송이 너무 늦어요", "배송이 늦네요") > 0.9
    # A folder of the user's own of that name comes first.
    (tmp_path / "reference_vectors").mkdir()
    with pytest.raises(InputError, match="must hold"):
        load_model("reference_vectors")


@pytest.mark.parametrize("kind", WRITERS)
def test_released_models(kind, tmp_path):
    folder = WRITERS[kind](tmp_path / "uncased")
    model = load_model(folder)
    assert model.embed(TEXT).shape == (32,)
    (prefix,) = (path.with_suffix("") for path in folder.glob("*.index"))
    np.testing.assert_array_equal(load_model(prefix).embed(TEXT), model.embed(TEXT))


def test_the_best_checkpoint_and_chosen_ones(tmp_path, monkeypatch):
    """The folder's choice is the best one; a path to another chooses that."""
    trained = write_model(tmp_path)
    (tmp_path / BEST_FOLDER).mkdir()
    newest = load_model(tmp_path).embed(TEXT)
    for variable in trained.trainable_variables:
        variable.assign(1.5 * variable)
    save_google_checkpoint(trained, str(tmp_path / BEST_FOLDER / "model.ckpt-2"))
    best = load_model(tmp_path).embed(TEXT)
    assert np.abs(best - newest).max() > 0.01
    np.testing.assert_array_equal(load_model(tmp_path / BEST_FOLDER).embed(TEXT), best)
    monkeypatch.chdir(tmp_path / BEST_FOLDER)
    np.testing.assert_array_equal(load_model(".").embed(TEXT), best)
    np.testing.assert_array_equal(load_model(tmp_path / "model.ckpt-3").embed(TEXT), newest)


def test_a_model_s_own_folder_may_be_called_best(tmp_path):
    """Its own records count, whatever is beside it."""
    folder = tmp_path / BEST_FOLDER
    write_folder(folder, task="similarity", pooling="cls")
    write_folder(tmp_path / "other")
    for path in (folder, folder / "model.ckpt-3"):
        model = load_model(path)
        assert (model.loaded.folder.path, model.pooling) == (str(folder), "cls")
        assert model.loaded.trained_positions == 16


def test_a_folder_of_transformers_and_a_tokenizer(tmp_path):
    """The models kept in the tests have none; a folder's is found, and any can be given."""
    folder = tmp_path / "bert"
    shutil.copytree(TEST_DATA / "transformers" / "bert_erf", folder)
    with pytest.raises(InputError, match="must hold its tokenizer, or load_model must be given it"):
        load_model(folder).embed(TEXT)
    write_folder(tmp_path / "ours")
    given = load_model(folder, tokenizer=FullTokenizer(tmp_path / "ours" / "vocab.txt", False))
    vectors = given.embed(TEXT)
    by_path = load_model(folder, tokenizer=tmp_path / "ours")
    np.testing.assert_array_equal(by_path.embed(TEXT), vectors)
    shutil.copy(tmp_path / "ours" / "vocab.txt", folder)
    np.testing.assert_array_equal(load_model(folder).embed(TEXT), vectors)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras_on_another_backend(monkeypatch, backend):
    """It loaded a model whose methods failed."""
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    with refused("set KERAS_BACKEND=tensorflow before Keras is imported. ", f"on {backend}"):
        load_model()


TWO_THREADS = """
import sys, threading
from korean_bert import load_model
threading.Thread(target=load_model).start()
while "keras" not in sys.modules:
    pass
print(load_model().loaded.task)
"""


def test_a_second_thread_waits_for_the_import():
    """Keras is among the modules before it can be used."""
    assert printed_by("-c", TWO_THREADS).split() == ["pretraining"]


UNPICKLE = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    models = pickle.load(file)
print([model.embed(sys.argv[2]).tolist() for model in models], flush=True)
"""


def test_a_model_goes_to_another_process(tmp_path):
    """By pickle, as multiprocessing and joblib send it, with the weights that it has now."""
    models = []
    for kind, task in (("bert", "pretraining"), ("albert", "ner"), ("electra", "similarity")):
        write_folder(tmp_path / kind, kind, task)
        models.append(load_model(tmp_path / kind))
        weight = models[-1].encoder.weights[0]
        weight.assign(weight + 1)
        shutil.rmtree(tmp_path / kind)
    (tmp_path / "models").write_bytes(pickle.dumps(models))
    printed = printed_by("-c", UNPICKLE, tmp_path / "models", TEXT)
    for model, vector in zip(models, json.loads(printed), strict=True):
        np.testing.assert_allclose(vector, model.embed(TEXT), atol=1e-6)
