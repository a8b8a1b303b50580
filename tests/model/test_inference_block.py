"""The fused block of inference: equal to the plain block, its layer norm to float64."""

import platform
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_models import random_batch, tensors, tiny_model

from bert_tf.encoder import run_inside
from bert_tf.layers import LayerNorm
from finetuning.features.inference_block import has_one_layer_norm, infer_block, one_layer_norm


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


# What the code itself says of the machine must not decide whether this test runs.
@pytest.mark.skipif(platform.machine() != "x86_64", reason="TensorFlow has it on x86-64 alone")
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
