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
from bert_tf.layers import SelfAttention, TransformerBlock, dense
from bert_tf.memory_estimate import count_parts
from bert_tf.model import GOOGLE_NAMES
from korean_bert import load_model
from model_formats.encoders import BERT, ENCODERS
from model_formats.huggingface.architectures import choose_architecture
from model_formats.huggingface.export import named_arrays
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from model_formats.runtimes.check import sample_inputs
from model_formats.runtimes.ids_graph import make_graph
from model_formats.saved_model import pretraining
from run_scripts.tools import fill_masks
from tests.support.models.model_folders import drop_weights, write_folder
from tests.support.programs import ClassifierJob, PretrainingJob, results
from tests.support.task_data import single_rows, write_splits
from tests.support.tiny_models import ONE_LAYER, SIZES


class GatedCosts(TransformerBlockCosts):
    """What a block costs."""

    @staticmethod
    def count_weights(config):
        gate = config.hidden_size * config.intermediate_size + config.intermediate_size
        return TransformerBlockCosts.count_weights(config) + gate


@dataclasses.dataclass(frozen=True)
class GatedConfig(BertConfig):
    """BERT's sizes, and a key of its own; one table of embeddings is not trained."""

    rotary_base: float = 10_000.0

    block = GatedCosts

    def count_parts(self):
        parts, untrained = super().count_parts(), self.max_position_embeddings * self.embedding_size
        return {**parts, "positions": parts["positions"] - untrained}


class RotaryAttention(SelfAttention):
    """Attention with rotary positions (arXiv:2104.09864)."""

    def __init__(self, config, *arguments, **options):
        super().__init__(config, *arguments, **options)
        self.base = config.rotary_base

    def place(self, query, key, inputs):
        places = inputs.position_ids  # [B, T]
        if places is None:
            batch, _, length, _ = tf.unstack(tf.shape(key))
            places = tf.tile(tf.range(length)[None], [batch, 1])
        of_queries = places
        if inputs.positions is not None:
            of_queries = tf.gather(places, inputs.positions, batch_dims=1)  # [B, Q]
        return rotate(query, of_queries, self.base), rotate(key, places, self.base)


def rotate(x, places, base):
    """[B, N, T, D] at [B, T] -> [B, N, T, D]."""
    half = x.shape[-1] // 2
    rates = np.float32(base) ** -(np.arange(half, dtype=np.float32) / half)
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


class GatedModel(BertModel):
    """An encoder with gated blocks, whose table of positions stays zero.

    Its variables have names of their own in checkpoints.
    """

    config_class = GatedConfig
    block_class = GatedBlock
    google_names = {
        **{ours: google.replace("bert/", "gated/core/") for ours, google in GOOGLE_NAMES.items()},
        "layer_{i}/gate/{w}": "gated/core/encoder/layer_{i}/gate/dense/{w}",
    }

    def build(self, input_shape=None):
        super().build()
        table = self.embeddings.position_embeddings
        table.assign(tf.zeros_like(table))
        table.trainable = False


@pytest.fixture(autouse=True)
def record(monkeypatch):
    """The row of the table, with ALBERT's defaults of flags."""
    names = {"name": "gated", "title": "Gated", "config_file": "gated_config.json"}
    classes = {"config": GatedConfig, "model": f"{__name__}.GatedModel"}
    row = dataclasses.replace(BERT, **names, **classes, defaults="albert")
    monkeypatch.setitem(ENCODERS, "gated", row)


@pytest.fixture
def folder(tmp_path):
    """A folder of a pre-trained model of this kind."""
    write_folder(tmp_path, "gated")
    return tmp_path


def test_exports_have_all_of_its_outputs(folder):
    loaded = load_folder(str(folder))
    inputs = sample_inputs(loaded, 2, 9, tf.int32, seed=1)
    places = np.tile(np.arange(9), (2, 1))
    whole = loaded.model({**inputs, "masked_lm_positions": places})
    expected = {**loaded.model.encoder(inputs), **whole}
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
    with pytest.raises(InputError, match="weight of Gated .* Received: gated/core/embeddings"):
        named_arrays(loaded, architecture)


def test_a_checkpoint_without_its_pooler(folder, capsys):
    """Vectors and guesses need none; an export leaves out what depends on it."""
    drop_weights(folder / "model.ckpt-3", "/pooler/")
    loaded = load_folder(str(folder))
    assert {name.rsplit("/", 1)[0] for name in loaded.missing} == {"gated/core/pooler/dense"}
    assert loaded.lacks_part("pooler") and [*loaded.head_outputs()] == ["masked_lm_logits"]
    argv = [f"--model_dir={folder}", "--text=the book is [MASK]"]
    assert fill_masks.main(["fill_masks", *argv]) == 0
    assert "the book is [MASK]" in capsys.readouterr().out


def test_a_configuration_must_count_the_weights_of_its_model():
    """Estimates of memory and speed are made of what it says, not of BERT's costs in silence."""
    with pytest.raises(TypeError, match="Config must state what its blocks cost, as `block`"):
        type("Config", (BertConfig,), {})
    uncounted = type("Uncounted", (GatedConfig,), {"block": TransformerBlockCosts})
    with pytest.raises(TypeError, match="Uncounted must count the weights of .*GatedModel"):
        ENCODERS["gated"].make_model(uncounted(**SIZES))
    model = ENCODERS["gated"].make_model(GatedConfig(**SIZES))
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
    sizes.write_text(json.dumps({**SIZES, **ONE_LAYER, "rotary_base": 500.0}))
    job = PretrainingJob(tmp_path)
    assert job.run(bert_config_file=None, config_file=sizes, num_train_steps=2) == 0
    assert json.loads((job.output / "gated_config.json").read_text())["rotary_base"] == 500
    (stage,) = ModelFolder(str(job.output)).stages
    assert stage["settings"]["optimizer"] == "lamb"  # ALBERT's
    tuned = ClassifierJob(tmp_path)
    tuned.output = tmp_path / "tuned"
    write_splits(tuned.data, ["text", "label"], single_rows(80), train=(0, 64), dev=(64, 80))
    assert tuned.run(bert_config_file=None, model_dir=job.output, do_eval=True, train_step=80) == 0
    assert results(tuned.output)["eval_accuracy"] > 0.9
    model = load_model(tuned.output)
    assert type(model.encoder) is GatedModel
    assert model.encoder.blocks[0].attention.base == 500
    text = next(text for text, label in single_rows(80) if label == "good")
    assert model.predict(text).label == "good"
