"""Hidden states and probabilities of attention, against transformers and the plain model."""

import platform
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from paths import TEST_DATA
from tiny_models import random_batch, tensors, tiny_model

from bert_tf.encoder import run_inside
from bert_tf.layers import LayerNorm
from finetuning.features.inference_block import has_one_layer_norm, infer_block, one_layer_norm
from model_formats.load_folder import load_folder

FOLDERS = sorted((TEST_DATA / "transformers").glob("*/inside.npz"))


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: path.parent.name)
def test_equal_to_transformers(path):
    """inside.npz is what transformers computed for the inputs in expected.npz."""
    names = ("input_ids", "input_mask", "segment_ids")
    with np.load(path.parent / "expected.npz") as file:
        inputs = {name: file[f"input/{name}"] for name in names}
    with np.load(path) as file:
        expected = dict(file)
    encoder = load_folder(str(path.parent)).model.encoder
    found = run_inside(encoder, tensors(inputs), return_probabilities=True)
    tokens = inputs["input_mask"].astype(bool)  # what padding's vectors are, no one reads
    assert expected["hidden_states"].shape == (3, 2, 11, 32)
    mine = np.stack(found.hidden_states)[:, tokens]
    np.testing.assert_allclose(mine, expected["hidden_states"][:, tokens], atol=1e-5, rtol=0)
    mine = np.stack(found.attentions).transpose(0, 1, 3, 2, 4)[:, tokens]  # [L, tokens, N, T]
    theirs = expected["attentions"].transpose(0, 1, 3, 2, 4)[:, tokens]
    np.testing.assert_allclose(mine, theirs, atol=1e-5, rtol=0)
    assert theirs.std() > 0.001


def test_there_are_folders():
    assert len(FOLDERS) == 4


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_nothing_changes_where_they_are_not_asked_for(kind):
    """The graph without them is the same as ever: no operation more."""
    model = tiny_model(kind).encoder
    batch = tensors(random_batch(0))
    inside = run_inside(model, batch, return_probabilities=True)
    outputs = model(batch, return_all_layers=True)
    np.testing.assert_array_equal(inside.hidden_states[-1], outputs["sequence_output"])
    for state, layer in zip(inside.hidden_states[1:], outputs["encoder_outputs"], strict=True):
        np.testing.assert_array_equal(state, layer)
    assert run_inside(model, batch).attentions == []

    def operations(**options):
        graph = tf.function(lambda inputs: run_inside(model, inputs, **options))
        return [op.type for op in graph.get_concrete_function(batch).graph.get_operations()]

    plain = tf.function(lambda inputs: model(inputs, training=False)["sequence_output"])
    expected = [op.type for op in plain.get_concrete_function(batch).graph.get_operations()]
    assert [name for name in operations() if name != "Identity"] == [
        name for name in expected if name != "Identity"
    ]


@pytest.mark.parametrize("onednn", ("1", "0"))
@pytest.mark.parametrize("activation", ("gelu", "gelu_erf", "relu", "linear"))
@pytest.mark.parametrize("kind", ("bert", "albert"))
@pytest.mark.usefixtures("optimized_graphs")
def test_blocks_for_their_output_alone(kind, activation, onednn, monkeypatch):
    """In a graph, where TensorFlow fuses operations; it does not with `call_block`."""
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", onednn)
    model = tiny_model(kind, hidden_act=activation, initializer_range=0.4).encoder
    batch = tensors(random_batch(0))
    expected = run_inside(model, batch).hidden_states
    run = tf.function(lambda inputs: run_inside(model, inputs, call_block=infer_block))
    for state, other in zip(run(batch).hidden_states, expected, strict=True):
        np.testing.assert_allclose(state, other, atol=2e-5, rtol=0)
    assert np.std(expected[-1]) > 0.5


def random_layer_norm(rows, width):
    """A `LayerNorm` with random weights, and the two arrays that it is to add and normalise."""
    random = np.random.default_rng(0)
    layer = LayerNorm(keras.DTypePolicy("float32"))
    layer.build((None, width))
    layer.gamma.assign(random.normal(1, 0.5, width))
    layer.beta.assign(random.normal(0, 0.5, width))
    return layer, *random.normal(0.3, 2, (2, rows, width)).astype(np.float32)


@pytest.mark.usefixtures("optimized_graphs")
def test_layer_norm_in_one_operation():
    """Against float64, in a row of nearly equal values too, where epsilon counts."""
    layer, x, residual = random_layer_norm(7, 48)
    x[3], residual[3] = 1e-6 * x[3], 0
    total = x.astype(np.float64) + residual
    deviation = np.sqrt(total.var(axis=1, keepdims=True) + layer.epsilon)
    expected = (total - total.mean(axis=1, keepdims=True)) / deviation
    expected = expected * layer.gamma.numpy() + layer.beta.numpy()
    run = tf.function(lambda *inputs: one_layer_norm(layer, *inputs))
    np.testing.assert_allclose(run(x, residual), expected, atol=1e-5, rtol=0)
    np.testing.assert_allclose(layer(x, residual), expected, atol=1e-5, rtol=0)
    assert np.abs(expected[3]).max() > 0.1


def test_where_tensorflow_has_that_operation(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    assert has_one_layer_norm()
    for gpus in ([], ["one"]):
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind, gpus=gpus: gpus)
        assert has_one_layer_norm() == (not gpus)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [])
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert not has_one_layer_norm()
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert not has_one_layer_norm()


@pytest.mark.skipif(not has_one_layer_norm(), reason="this TensorFlow has no such operation")
@pytest.mark.usefixtures("optimized_graphs")
def test_tensorflow_recognizes_layer_norm():
    """What runs, after TensorFlow has rewritten the graph, is oneDNN's operation."""
    layer, x, residual = random_layer_norm(7, 48)
    weights = layer.gamma.numpy(), layer.beta.numpy()
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    metadata = tf.compat.v1.RunMetadata()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        gamma, beta = map(tf.constant, weights)
        constant = types.SimpleNamespace(gamma=gamma, beta=beta, epsilon=layer.epsilon)
        a, b = (tf.compat.v1.placeholder(tf.float32, (None, 48)) for _ in range(2))
        found = tf.identity(one_layer_norm(constant, a, b))
        session.run(found, {a: x, b: residual}, options=options, run_metadata=metadata)
    (graph,) = metadata.partition_graphs
    assert "_MklLayerNorm" in {node.op for node in graph.node}


def test_another_attention_function_need_not_return_them():
    """It trains as it is; asked for probabilities, it says that it has none."""

    def summed(query, key, value, bias, dropout_rate=0.0, dropout_seed=None):
        return value + tf.reduce_sum(query * key) * 0

    encoder = type(tiny_model().encoder)(tiny_model().encoder.config, attention_function=summed)
    batch = tensors(random_batch(0))
    assert len(run_inside(encoder, batch).hidden_states) == 3
    with pytest.raises(TypeError, match="return_probabilities"):
        run_inside(encoder, batch, return_probabilities=True)
