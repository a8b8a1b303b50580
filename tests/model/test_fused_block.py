"""The fused block of inference: equal to the plain block, its layer norm to float64."""

import platform
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import test_util

from bert_tf import fused_block
from bert_tf.encoder import run_inside
from bert_tf.fused_block import has_one_layer_norm, one_layer_norm
from bert_tf.layers import LayerNorm, TransformerBlock, infer_block
from bert_tf.model import BertModel
from tests.support.crosses import quick_by_pairs
from tests.support.paths import printed_by
from tests.support.tiny_models import random_batch, tensors, tiny_model


@pytest.mark.parametrize(
    ("kind", "activation", "onednn"),
    quick_by_pairs(("bert", "albert"), ("gelu", "gelu_erf", "relu", "linear"), ("1", "0")),
)
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


class DoubledBlock(TransformerBlock):
    """A block with other mathematics, and no form for inference of its own."""

    def call(self, x, inputs, training=None):
        return 2 * super().call(x, inputs, training=training)


class Doubled(keras.layers.Layer):
    """A layer around a block's own, as of LoRA by hand."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, x):
        return 2 * self.inner(x)


def quantize(block):
    block.intermediate.quantize("int8")


def replace(block):
    block._tracker.unlock()
    block.intermediate = Doubled(block.intermediate)


@pytest.mark.parametrize(
    "block_class, change",
    ((DoubledBlock, id), (TransformerBlock, quantize), (TransformerBlock, replace)),
)
def test_a_changed_block_is_computed_by_its_own_call(monkeypatch, block_class, change):
    """An int8 kernel is not the weights, and another layer may have none."""
    monkeypatch.setattr(BertModel, "block_class", block_class)
    model, batch = tiny_model(dropout=0.3, initializer_range=0.4).encoder, tensors(random_batch(0))
    for block in model.blocks:
        change(block)
    plain = run_inside(model, batch).hidden_states
    inferred = run_inside(model, batch, call_block=infer_block).hidden_states
    np.testing.assert_array_equal(inferred[-1], plain[-1])


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
    """With oneDNN on an x86 processor, without a GPU."""
    for processor, onednn, gpus, expected in (
        ("x86_64", True, [], True),
        ("AMD64", True, [], True),
        ("x86_64", False, [], False),
        ("x86_64", True, ["one"], False),
        ("arm64", True, [], False),
    ):
        monkeypatch.setattr(platform, "machine", lambda answer=processor: answer)
        monkeypatch.setattr(fused_block, "onednn_is_on", lambda answer=onednn: answer)
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind, answer=gpus: answer)
        assert has_one_layer_norm() == expected


def onednn_of_process(**environment):
    """What TensorFlow itself and `onednn_is_on` say in a new process."""
    program = (
        "from tensorflow.python.framework import test_util\n"
        "from bert_tf.fused_block import onednn_is_on\n"
        "print(test_util.IsMklEnabled(), onednn_is_on())"
    )
    return printed_by("-c", program, **environment).split()


@pytest.mark.slow
def test_onednn_is_asked_of_tensorflow():
    assert onednn_of_process(TF_ENABLE_ONEDNN_OPTS="0") == ["False", "False"]
    on = str(platform.machine() in ("x86_64", "AMD64"))
    assert onednn_of_process(TF_ENABLE_ONEDNN_OPTS="1") == [on, on]


# What this module says of the machine must not decide whether this test runs.
@pytest.mark.skipif(not test_util.IsMklEnabled(), reason="TensorFlow has it with oneDNN alone")
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
