"""A new encoder is a configuration, a model and a record: no file of the packages names it."""

import dataclasses
import json

import numpy as np
import pytest

from bert_tf import BertConfig, BertModel
from bert_tf.layers import TransformerBlock
from korean_bert import load_model
from model_formats.encoders import BERT, ENCODERS
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from run_scripts import extract_features
from tests.support.models.model_folders import write_folder
from tests.support.programs import ClassifierJob, PretrainingJob, results
from tests.support.task_data import single_rows, write_splits
from tests.support.tiny_models import ONE_LAYER, SIZES, random_batch, tensors


@dataclasses.dataclass(frozen=True)
class DummyConfig(BertConfig):
    """BERT's sizes, and a key by which a file is known."""

    turned: bool = True


class DummyBlock(TransformerBlock):
    """A block with other mathematics: its output is turned around."""

    def call(self, x, inputs, **options):
        return -super().call(x, inputs, **options)


class DummyModel(BertModel):
    """BERT with other blocks."""

    def __init__(self, config, attention_function=None, **options):
        super().__init__(config, **options)

    def build(self, input_shape=None):
        self.blocks = [
            DummyBlock(self.config, name=block.name, dtype=self.dtype_policy)
            for block in self.blocks
        ]
        super().build(input_shape)


@pytest.fixture(autouse=True)
def record(monkeypatch):
    """The row of the table, with ALBERT's defaults of flags."""
    row = dataclasses.replace(
        BERT,
        name="dummy",
        title="Dummy",
        config=DummyConfig,
        model=f"{__name__}.DummyModel",
        config_file="dummy_config.json",
        defaults="albert",
    )
    monkeypatch.setitem(ENCODERS, "dummy", row)


@pytest.fixture
def folder(tmp_path):
    """A folder of a pre-trained model of this kind."""
    write_folder(tmp_path / "m", "dummy")
    return tmp_path / "m"


def test_a_folder_of_it(folder):
    opened = ModelFolder.open(str(folder))
    assert (opened.model_type, type(opened.config)) == ("dummy", DummyConfig)
    loaded = load_folder(str(folder))
    assert type(loaded.model.encoder) is DummyModel and loaded.missing == ()


def test_its_vectors(folder, capsys):
    """A program and Python compute what its own blocks compute."""
    batch = random_batch(0)
    model = load_model(folder)
    (folder / "lines.txt").write_text("the book is red\n")
    argv = [f"--model_dir={folder}", f"--input_file={folder}/lines.txt", "--layers=-1"]
    argv += [f"--output_file={folder}/out.npz", "--max_seq_length=16", "--pooling=cls"]
    assert extract_features.main(["extract_features", *argv]) == 0
    with np.load(folder / "out.npz") as file:
        (vector,) = file["features"]
    ids = model.loaded.tokenizer.encode("the book is red")
    row = [model.loaded.tokenizer.cls_id, *ids, model.loaded.tokenizer.sep_id]
    expected = model.encoder({"input_ids": np.array([row])})["sequence_output"][0, 0]
    np.testing.assert_allclose(np.ravel(vector), expected, atol=1e-5)
    assert model.encoder(tensors(batch))["sequence_output"].shape[-1] == 32


def test_it_is_pre_trained_then_fine_tuned(tmp_path):
    """By its configuration alone; then by the folder that the pre-training wrote."""
    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps({**SIZES, **ONE_LAYER, "turned": True}))
    job = PretrainingJob(tmp_path)
    assert job.run(bert_config_file=None, config_file=sizes, num_train_steps=2) == 0
    assert json.loads((job.output / "dummy_config.json").read_text())["turned"] is True
    (stage,) = ModelFolder(str(job.output)).stages
    assert stage["settings"]["optimizer"] == "lamb"  # ALBERT's
    tuned = ClassifierJob(tmp_path)
    tuned.output = tmp_path / "tuned"
    write_splits(tuned.data, ["text", "label"], single_rows(80), train=(0, 64), dev=(64, 80))
    assert tuned.run(bert_config_file=None, model_dir=job.output, do_eval=True) == 0
    assert results(tuned.output)["eval_accuracy"] > 0.9
    model = load_model(tuned.output)
    assert type(model.encoder) is DummyModel
    text = next(text for text, label in single_rows(80) if label == "good")
    assert model.predict(text).label == "good"
