"""Hidden states and probabilities of attention, against transformers and the plain model."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder import run_inside
from model_formats.load_folder import load_folder
from tests.support.paths import TEST_DATA
from tests.support.tiny_models import random_batch, tensors, tiny_model

FOLDERS = sorted((TEST_DATA / "transformers").glob("*/inside.npz"))
assert len(FOLDERS) == 4


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

    def operations(function):
        graph = tf.function(function).get_concrete_function(batch).graph
        return [op.type for op in graph.get_operations() if op.type != "Identity"]

    def plain(inputs):
        return model(inputs, training=False)["sequence_output"]

    assert operations(lambda inputs: run_inside(model, inputs)) == operations(plain)


def test_another_attention_function_need_not_return_them():
    """It trains as it is; asked for probabilities, it says that it has none."""

    def summed(query, key, value, bias, dropout_rate=0.0, dropout_seed=None):
        return value + tf.reduce_sum(query * key) * 0

    encoder = type(tiny_model().encoder)(tiny_model().encoder.config, attention_function=summed)
    batch = tensors(random_batch(0))
    assert len(run_inside(encoder, batch).hidden_states) == 3
    with pytest.raises(TypeError, match="return_probabilities"):
        run_inside(encoder, batch, return_probabilities=True)
