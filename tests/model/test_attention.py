"""Attention as a function: equal to the formula, replaceable in every block."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel
from bert_tf.attention import MASKED_SCORE, attention, attention_bias
from tests.support.oracle import log_softmax
from tests.support.tiny_models import SIZES, gradients_of, make_step, random_batch, tiny_model

# B, N, Q, T, D
SHAPE = (2, 3, 4, 5, 8)


def tensors_of_heads():
    """Query, key and value of random numbers, and the bias of rows with padding."""
    rng = np.random.default_rng(0)
    batch, heads, queries, tokens, size = SHAPE
    query, key, value = (
        rng.normal(size=(batch, heads, n, size)) for n in (queries, tokens, tokens)
    )
    mask = (np.arange(tokens) < np.array([[5], [3]])).astype(np.int32)  # [B, T]
    return query, key, value, np.asarray(attention_bias(mask))


def test_equals_the_formula():
    query, key, value, bias = tensors_of_heads()
    scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(SHAPE[-1])
    expected = np.exp(log_softmax(scores + bias.astype(np.float64)))
    context, probabilities = attention(query, key, value, bias, return_probabilities=True)
    np.testing.assert_allclose(probabilities, expected, atol=1e-12)
    np.testing.assert_allclose(context, expected @ value, atol=1e-12)
    np.testing.assert_array_equal(attention(query, key, value, bias), context)
    assert (np.asarray(probabilities)[1, ..., 3:] == 0).all(), "padding"


def test_dropout_is_of_the_probabilities():
    """The context is that of the probabilities that were kept, scaled up."""
    query, key, _, bias = tensors_of_heads()
    identity = np.broadcast_to(np.eye(SHAPE[3]), (*SHAPE[:2], SHAPE[3], SHAPE[3]))
    seed = tf.constant([1, 2], tf.uint32)
    context, probabilities = attention(
        query, key, identity, bias, 0.4, seed, return_probabilities=True
    )
    context, scaled = np.asarray(context), np.asarray(probabilities) / 0.6
    kept = context > 0
    np.testing.assert_allclose(context[kept], scaled[kept], rtol=1e-12)
    assert 0 < (scaled[~kept] > 0).sum() < (scaled > 0).sum()


MODELS = {"bert": (BertModel, BertConfig), "albert": (AlbertModel, AlbertConfig)}


@pytest.mark.parametrize("kind", MODELS)
def test_another_function_in_every_block(kind):
    shapes = []

    def uniform(query, key, value, bias, dropout_rate, dropout_seed):
        """Attends to all tokens equally."""
        shapes.append((query.shape, key.shape, value.shape, bias.shape))
        assert dropout_seed is None
        allowed = tf.cast(bias > MASKED_SCORE / 2, value.dtype)  # [B, 1, 1, T]
        mean = tf.matmul(allowed, value) / tf.reduce_sum(allowed, -1, keepdims=True)
        return tf.broadcast_to(mean, query.shape)

    model, config = MODELS[kind]
    model = model(config(**SIZES, initializer_range=0.5), attention_function=uniform)
    inputs = {name: random_batch(0)[name] for name in ("input_ids", "input_mask", "segment_ids")}
    output = model(inputs)["sequence_output"].numpy()
    heads = (8, 4, 16, 8)  # B, N, T, D
    assert shapes == [(heads, heads, heads, (8, 1, 1, 16))] * 2  # layers
    usual = type(model)(model.config)
    usual.set_weights(model.get_weights())
    assert not np.allclose(usual(inputs)["sequence_output"].numpy(), output, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("recompute, runs", (("none", 2), ("block", 4)))
def test_another_function_is_recomputed_too(recompute, runs):
    calls = []

    def counted(query, key, value, bias, dropout_rate, dropout_seed):
        calls.append(dropout_rate)
        assert dropout_seed.shape == (2,)
        return attention(query, key, value, bias, dropout_rate, dropout_seed)

    plain, exchanged = (make_step(recompute=recompute, dropout=0.1) for _ in range(2))
    for block in exchanged.model.encoder.blocks:
        block.attention.attention_function = counted
    expected, found = (gradients_of(step, random_batch(0)) for step in (plain, exchanged))
    assert calls == [0.1] * runs
    assert found[0] == expected[0]
    for path, gradient in expected[1].items():
        np.testing.assert_array_equal(found[1][path], gradient, err_msg=path)


def test_a_saved_model_has_the_usual_function(tmp_path):
    model = BertModel(tiny_model().config, attention_function=lambda *_: 1 / 0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.blocks[0].attention.attention_function is attention
