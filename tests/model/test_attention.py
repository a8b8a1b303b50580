"""Attention as a function: dropout of its probabilities, another one in every block."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import BertModel
from bert_tf.attention import MASKED_SCORE, attention, attention_bias
from tests.support.tiny_models import random_batch, tiny_model


def test_dropout_is_of_the_probabilities():
    """The context is that of the probabilities that were kept, scaled up."""
    query, key = np.random.default_rng(0).normal(size=(2, 2, 3, 5, 8))  # [B, N, T, D]
    identity, seed = np.broadcast_to(np.eye(5), (2, 3, 5, 5)), tf.constant([1, 2], tf.uint32)
    bias = attention_bias(np.array([[1] * 5, [1] * 3 + [0] * 2], np.int32))
    given = (query, key, identity, bias, 0.4, seed)
    context, probabilities = map(np.asarray, attention(*given, return_probabilities=True))
    np.testing.assert_array_equal(attention(*given), context)
    scaled = probabilities / 0.6
    kept = context > 0
    np.testing.assert_allclose(context[kept], scaled[kept], rtol=1e-12)
    assert 0 < (scaled[~kept] > 0).sum() < (scaled > 0).sum()


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_another_function_in_every_block(kind):
    shapes = []

    def uniform(query, key, value, bias, dropout_rate, dropout_seed):
        """Attends to all tokens equally."""
        shapes.append((query.shape, key.shape, value.shape, bias.shape))
        assert dropout_seed is None
        allowed = tf.cast(bias > MASKED_SCORE / 2, value.dtype)  # [B, 1, 1, T]
        mean = tf.matmul(allowed, value) / tf.reduce_sum(allowed, -1, keepdims=True)
        return tf.broadcast_to(mean, query.shape)

    usual, inputs = tiny_model(kind, initializer_range=0.5).encoder, random_batch(0)
    model = type(usual)(usual.config, attention_function=uniform)
    model.set_weights(usual.get_weights())
    output = model(inputs)["sequence_output"].numpy()
    heads = (8, 4, 16, 8)  # B, N, T, D
    assert shapes == [(heads, heads, heads, (8, 1, 1, 16))] * 2  # layers
    assert not np.allclose(usual(inputs)["sequence_output"].numpy(), output, atol=1e-2)


def test_a_saved_model_has_the_usual_function(tmp_path):
    model = BertModel(tiny_model().config, attention_function=lambda *_: 1 / 0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.blocks[0].attention.attention_function is attention
