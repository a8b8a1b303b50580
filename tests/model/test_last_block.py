"""The last block, run where its output is read, computes there what it computes everywhere.

Shapes: B batch, T tokens, H hidden, P positions.
"""

import numpy as np
import pytest
import tensorflow as tf
from test_packed import SIZES, packed, sequences
from tiny import random_batch, tiny_model

from bert_tf.layers import TransformerBlock, gather_positions

KINDS = ("bert", "albert")


@pytest.mark.parametrize("rows", ("apart", "packed"))
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_gradients_are_those_of_the_whole(float64, kind, rows):
    sizes, batch = ({}, random_batch(0)) if rows == "apart" else (SIZES, packed(sequences()))
    encoder = tiny_model(kind, initializer_range=0.2, **sizes).encoder
    positions = tf.constant(batch["masked_lm_positions"])

    def run(**options):
        """Outputs, and the gradient of a sum of them with unequal weights."""
        with tf.GradientTape() as tape:
            found = encoder(batch, **options)
            if not options:
                found["sequence_output"] = gather_positions(found["sequence_output"], positions)
            rng = np.random.default_rng(0)
            total = sum(tf.reduce_sum(v * rng.normal(size=v.shape)) for v in found.values())
        gradients = tape.gradient(total, encoder.trainable_variables)
        found = {name: value.numpy() for name, value in found.items()}
        return found, [tf.convert_to_tensor(g).numpy() for g in gradients]

    (expected, whole), (found, some) = run(), run(positions=positions)
    assert found["sequence_output"].shape == (*positions.shape, encoder.config.hidden_size)
    for name, value in expected.items():
        assert np.abs(value).max() > 0.1
        np.testing.assert_allclose(found[name], value, atol=1e-12, rtol=0, err_msg=name)
    for variable, one, other in zip(encoder.trainable_variables, whole, some, strict=True):
        bound = 1e-11 * max(np.abs(one).max(), 1e-2)
        np.testing.assert_allclose(other, one, atol=bound, rtol=0, err_msg=variable.path)


@pytest.mark.parametrize("kind", KINDS)
def test_pretraining_runs_it_at_the_predictions_alone(monkeypatch, kind):
    lengths = []
    original = TransformerBlock.call

    def watched(block, *arguments, **options):
        y = original(block, *arguments, **options)  # [B, T or P, H]
        lengths.append(y.shape[1])
        return y

    monkeypatch.setattr(TransformerBlock, "call", watched)
    tiny_model(kind, num_hidden_layers=3)(random_batch(0, length=16, predictions=4))
    assert lengths == [16, 16, 1 + 4]
