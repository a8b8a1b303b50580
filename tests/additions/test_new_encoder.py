"""A new encoder is a configuration, a model and a record: no file of the packages names it."""

import dataclasses
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf import BertConfig, BertModel
from bert_tf.block_costs import TransformerBlockCosts
from bert_tf.checkpoint import google_arrays, write_arrays
from bert_tf.layers import SelfAttention, TransformerBlock, dense
from bert_tf.memory_estimate import count_parts
from bert_tf.model import GOOGLE_NAMES
from korean_bert import load_model
from model_formats.encoders import BERT, ENCODERS
from model_formats.huggingface.architectures import choose_architecture
from model_formats.huggingface.export import named_arrays
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from model_formats.runtimes import litert_model, onnx_model
from model_formats.runtimes.check import sample_inputs
from model_formats.runtimes.ids_graph import make_graph
from model_formats.saved_model import pretraining
from model_formats.saved_model.export import export as export_saved_model
from run_scripts import extract_features
from run_scripts.conversion import adapt_checkpoint
from run_scripts.tools import fill_masks
from tests.support.models.model_folders import PIECES, write_folder, write_model
from tests.support.programs import ClassifierJob, PretrainingJob, results
from tests.support.task_data import single_rows, write_splits
from tests.support.tiny_models import ONE_LAYER, SIZES, random_batch, tensors
from tests.support.vocabularies import write_tokenizer


@dataclasses.dataclass(frozen=True)
class DummyConfig(BertConfig):
    """BERT's sizes, and a key by which a file is known."""

    turned: bool = True
    block = TransformerBlockCosts


class DummyBlock(TransformerBlock):
    """A block with other mathematics: its output is turned around."""

    def call(self, x, inputs, **options):
        return -super().call(x, inputs, **options)


class DummyModel(BertModel):
    """BERT with other blocks, whose variables have other names in checkpoints."""

    block_class = DummyBlock
    google_names = {
        ours: google.replace("bert/", "turned/core/") for ours, google in GOOGLE_NAMES.items()
    }


class RotaryAttention(SelfAttention):
    """Attention with rotary positions (arXiv:2104.09864)."""

    def place(self, query, key, inputs):
        places = inputs.position_ids  # [B, T]
        if places is None:
            places = tf.tile(tf.range(key.shape[2])[None], [key.shape[0], 1])
        of_queries = places
        if inputs.positions is not None:
            of_queries = tf.gather(places, inputs.positions, batch_dims=1)  # [B, Q]
        return rotate(query, of_queries), rotate(key, places)


def rotate(x, places):
    """[B, N, T, D] at [B, T] -> [B, N, T, D]."""
    half = x.shape[-1] // 2
    rates = np.float32(10_000) ** -(np.arange(half, dtype=np.float32) / half)
    angles = tf.cast(places, tf.float32)[:, None, :, None] * rates  # [B, 1, T, D / 2]
    cos, sin = (tf.cast(wave, x.dtype) for wave in (tf.cos(angles), tf.sin(angles)))
    one, two = x[..., :half], x[..., half:]
    return tf.concat([one * cos - two * sin, two * cos + one * sin], axis=-1)


class GatedBlock(TransformerBlock):
    """A block with a gate (GeGLU, arXiv:2002.05202) and rotary positions."""

    attention_class = RotaryAttention

    def build(self, input_shape=None):
        super().build()
        config, hidden = self.config, self.config.hidden_size
        self.gate = dense(config.intermediate_size, config, "gate", dtype=self.dtype_policy)
        self.gate.build((None, None, hidden))

    def feed_forward(self, x):
        return self.output_dense(self.intermediate(x) * self.gate(x))


class GatedCosts(TransformerBlockCosts):
    """What it costs."""

    @staticmethod
    def count_weights(config):
        gate = config.hidden_size * config.intermediate_size + config.intermediate_size
        return TransformerBlockCosts.count_weights(config) + gate


class UncountedConfig(BertConfig):
    """A configuration that states the costs of BERT's block."""

    block = TransformerBlockCosts


class GatedConfig(BertConfig):
    """The right one, also about the embeddings, which have one table less."""

    block = GatedCosts

    def count_parts(self):
        positions = self.max_position_embeddings * self.embedding_size
        parts = super().count_parts()
        return {**parts, "positions": parts["positions"] - positions}


class GatedModel(BertModel):
    """An encoder with gated blocks, whose table of positions stays zero."""

    block_class = GatedBlock

    def build(self, input_shape=None):
        super().build()
        table = self.embeddings.position_embeddings
        table.assign(tf.zeros_like(table))
        table.trainable = False


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


def outputs_of(loaded, inputs):
    """What the model itself computes of a graph's inputs."""
    encoded = loaded.model.encoder(inputs)
    places = np.tile(np.arange(inputs["input_ids"].shape[1]), (len(inputs["input_ids"]), 1))
    return {**encoded, **loaded.model({**inputs, "masked_lm_positions": places})}


def test_exports_have_all_of_its_outputs(folder):
    loaded = load_folder(str(folder))
    inputs = sample_inputs(loaded, 2, 9, tf.int32, seed=1)
    expected = outputs_of(loaded, inputs)
    found = make_graph(loaded, "int32")(*inputs.values())
    assert sorted(found) == [
        "masked_lm_logits", "next_sentence_logits", "pooled_output", "sequence_output"
    ]  # fmt: skip
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)
    assert set(pretraining.signatures(loaded).functions) == {
        "serving_default", "ids", "masked_words"
    }  # fmt: skip
    architecture = choose_architecture(loaded)
    assert architecture.suffix == "ForPreTraining"
    with pytest.raises(InputError, match="weight of Dummy .* Received: turned/core/embeddings"):
        named_arrays(loaded, architecture)


@pytest.mark.slow
@pytest.mark.parametrize("form", (onnx_model, litert_model))
def test_files_of_runtimes_have_its_pooled_output(folder, tmp_path, form):
    pytest.importorskip("onnxruntime" if form is onnx_model else "ai_edge_litert")
    loaded = load_folder(str(folder))
    form.export(loaded, tmp_path, "float32")
    run = form.open_file(str(tmp_path / form.MODEL_FILE))
    inputs = sample_inputs(loaded, 2, 9, tf.int64 if form is onnx_model else tf.int32, seed=1)
    found, expected = run(inputs), outputs_of(loaded, inputs)
    np.testing.assert_allclose(found["pooled_output"], expected["pooled_output"], atol=1e-4)


@pytest.mark.slow
def test_a_saved_model_reads_its_pooler(tmp_path):
    """As the head for texts, of which the graph of a classifier has the probabilities."""
    model = write_model(tmp_path / "m", "dummy", "classification")
    loaded = load_folder(str(tmp_path / "m"))
    export_saved_model(loaded, tmp_path / "out")
    inputs = sample_inputs(loaded, 2, 9, tf.int32, seed=1)
    signature = tf.saved_model.load(str(tmp_path / "out")).signatures["ids"]
    found = signature(**{name: tf.constant(value) for name, value in inputs.items()})
    expected = tf.nn.softmax(model(inputs)["logits"])
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)


def test_a_checkpoint_without_its_pooler(folder, capsys):
    """Vectors and guesses need none; an export leaves out what depends on it."""
    arrays = google_arrays(str(folder / "model.ckpt-3"))
    kept = {name: arrays.read(name) for name in arrays.shapes if "/pooler/" not in name}
    write_arrays(str(folder / "model.ckpt-3"), kept)
    loaded = load_folder(str(folder))
    assert {name.rsplit("/", 1)[0] for name in loaded.missing} == {"turned/core/pooler/dense"}
    assert loaded.lacks_part("pooler") and [*loaded.head_outputs()] == ["masked_lm_logits"]
    argv = [f"--model_dir={folder}", "--text=the book is [MASK]"]
    assert fill_masks.main(["fill_masks", *argv]) == 0
    assert "the book is [MASK]" in capsys.readouterr().out


def test_its_vocabulary_is_adapted(folder, tmp_path):
    """With it the bias of the head for masked words, which another table names."""
    new = [*PIECES, "책"]
    argv = [f"--model_dir={folder}", f"--output_dir={tmp_path}/new"]
    argv += [f"--tokenizer_dir={write_tokenizer(tmp_path / 'v', new)}"]
    argv += ["--max_position_embeddings=40"]
    assert adapt_checkpoint.main(["adapt_checkpoint", *argv]) == 0
    loaded = load_folder(str(tmp_path / "new"))
    assert loaded.config.max_position_embeddings == 40 and loaded.missing == ()
    assert loaded.model.masked_lm.output_bias.shape == (len(new),)


def test_a_configuration_must_count_the_weights_of_its_model():
    """Estimates of memory and speed are made of what it says, not of BERT's costs in silence."""
    with pytest.raises(TypeError, match="Config must state what its blocks cost, as `block`"):
        type("Config", (BertConfig,), {})
    row = dataclasses.replace(BERT, model=f"{__name__}.GatedModel")
    with pytest.raises(TypeError, match="UncountedConfig must count the weights of .*GatedModel"):
        row.make_model(UncountedConfig(**SIZES))
    model = row.make_model(GatedConfig(**SIZES))
    parts = count_parts(model.config)
    weights = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    assert sum(parts.values()) - parts["heads"] == weights


def test_rotary_positions():
    """They are relative, known at chosen rows too, and those of packed rows."""
    model, random = GatedModel(GatedConfig(**SIZES)), np.random.default_rng(1)
    for variable in model.trainable_variables:
        if len(variable.shape) > 1:
            variable.assign(random.normal(0, 0.5, variable.shape))
    ids = random.integers(5, SIZES["vocab_size"], [2, 9])
    output = model({"input_ids": ids})["sequence_output"]
    backwards = model({"input_ids": ids[:, ::-1]})["sequence_output"]
    assert np.abs(output - backwards[:, ::-1]).max() > 0.01
    places = np.tile(np.arange(9), (2, 1))
    packed = {"segment_index": np.ones_like(ids), "sequence_starts": np.zeros((2, 1), int)}
    moved = model({"input_ids": ids, "position_ids": places + 3, **packed})["sequence_output"]
    np.testing.assert_allclose(moved, output, atol=1e-5)
    rows = np.array([[2, 7], [0, 1]])
    some = model({"input_ids": ids}, positions=rows)["sequence_output"]
    np.testing.assert_allclose(some, tf.gather(output, rows, batch_dims=1), atol=1e-5)


def test_its_blocks_are_made_as_the_model_is():
    model = GatedModel(GatedConfig(**SIZES), attention_function=print, dtype="mixed_bfloat16")
    assert {block.attention.attention_function for block in model.blocks} == {print}
    assert {block.compute_dtype for block in model.blocks} == {"bfloat16"}


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
    assert tuned.run(bert_config_file=None, model_dir=job.output, do_eval=True, train_step=80) == 0
    assert results(tuned.output)["eval_accuracy"] > 0.9
    model = load_model(tuned.output)
    assert type(model.encoder) is DummyModel
    text = next(text for text, label in single_rows(80) if label == "good")
    assert model.predict(text).label == "good"
