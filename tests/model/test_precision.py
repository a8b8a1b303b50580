"""What precision keeps: residual sums, gathered rows' gradients, equal logits; int8 by Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import BertConfig
from bert_tf.attention import attention_bias
from bert_tf.layers import BlockInputs, TransformerBlock, gather_positions
from bert_tf.pretraining import most_likely
from tests.support.tiny_models import SIZES, random_batch, tensors, tiny_model


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float32"])
@pytest.mark.parametrize("part", ["attention_output", "output_dense"])
def test_small_change_of_a_large_residual_is_kept(policy, part):
    """256 + 0.5 is 256 in bfloat16: the layer norm would see the same number everywhere."""
    config = BertConfig(**SIZES)
    block = TransformerBlock(config, dtype=policy)
    block.build()
    for name in ("attention_output", "output_dense"):
        kernel, bias = getattr(block, name).weights
        kernel.assign(tf.zeros_like(kernel))
        bias.assign(tf.zeros_like(bias))
    signs = np.tile([1.0, -1.0], config.hidden_size // 2)  # [H]
    getattr(block, part).bias.assign(0.5 * signs)
    if part == "output_dense":
        # The first layer norm returns 256 everywhere, and so what the second sum begins with.
        block.attention_layer_norm.gamma.assign(np.zeros(config.hidden_size))
        block.attention_layer_norm.beta.assign(np.full(config.hidden_size, 256.0))
    x = tf.fill([1, 3, config.hidden_size], tf.cast(256.0, block.compute_dtype))
    inputs = BlockInputs(attention_bias(np.ones((1, 3), np.int32)))
    output = block(x, inputs)  # [1, 3, H]
    np.testing.assert_allclose(tf.cast(output, tf.float32), np.tile(signs, (1, 3, 1)), atol=1e-2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_gradient_of_a_row_gathered_many_times(dtype):
    """A sum of ones in bfloat16 stops at 256, as 257 is rounded to it."""
    x = tf.ones([2, 5, 4], dtype)
    positions = tf.zeros([2, 400], tf.int32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        rows = gather_positions(x, positions)  # [2, 400, 4]
    gradient = keras.ops.convert_to_numpy(tf.cast(tape.gradient(rows, x), tf.float32))
    assert rows.dtype == x.dtype
    np.testing.assert_array_equal(gradient[:, 0], 400.0)
    np.testing.assert_array_equal(gradient[:, 1:], 0.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_most_likely_class_of_equal_logits_is_the_first(compiled):
    """As NumPy's argmax; in bfloat16 the largest of many logits often occurs twice."""
    drawn = np.random.default_rng(7).normal(size=(3, 50, 400)) * 0.1 + 20
    logits = tf.cast(drawn, tf.bfloat16)
    values = tf.cast(logits, tf.float32).numpy()
    assert ((values == values.max(-1, keepdims=True)).sum(-1) > 1).mean() > 0.5  # ties
    found = tf.function(most_likely, jit_compile=compiled)(logits)
    np.testing.assert_array_equal(found, values.argmax(-1))
    assert found.shape == (3, 50)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_keras_quantizes_an_encoder():
    """Before its first call, too: dropout has no weights to build, as Keras's own has none."""
    encoder, batch = tiny_model(initializer_range=0.2).encoder, tensors(random_batch(0))
    other = keras.models.clone_model(encoder)
    other.set_weights(encoder.get_weights())
    other.quantize("int8")
    expected = encoder(batch)["sequence_output"]
    np.testing.assert_allclose(other(batch)["sequence_output"], expected, atol=0.2, rtol=0)
    assert other.blocks[0].intermediate.kernel.dtype == "int8"
