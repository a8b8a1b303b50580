"""Packed rows, and a last block run at the predictions alone: outputs and gradients stay the same.

Shapes: B rows, T tokens, H hidden, S sequences of a row, P predictions.
"""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder import PACKED_INPUTS
from bert_tf.layers import gather_positions
from tests.support.crosses import slow
from tests.support.tiny_models import (
    assert_close,
    gradients_of,
    make_step,
    random_batch,
    tiny_model,
)

KINDS = ("bert", "albert")

# The lengths of the sequences of each row. A row is longer than the model has positions.
ROWS = ((5, 9, 7), (3, 12, 6, 8, 4), (12, 2))
LENGTH, MOST, POSITIONS = 40, 5, 12
SIZES = {"max_position_embeddings": POSITIONS}

# Predictions of a sequence at most; in the row each sequence has its own places.
PLACES = 3


def sequences():
    """Each sequence in a separate row, padded to the longest: features [B, ...]."""
    lengths, rng = np.array(sum(ROWS, ())), np.random.default_rng(0)
    size = len(lengths)
    mask = (np.arange(POSITIONS) < lengths[:, None]).astype(np.int32)
    batch = random_batch(0, size, POSITIONS, PLACES, padding=False)
    return {
        **batch,
        "input_ids": batch["input_ids"] * mask,
        "input_mask": mask,
        "segment_ids": batch["segment_ids"] * mask,
        "masked_lm_positions": rng.integers(0, lengths[:, None], (size, PLACES)).astype(np.int32),
        # Weights that are not counts: each sequence must keep its own.
        "masked_lm_weights": batch["masked_lm_weights"]
        * rng.uniform(0.5, 2, [size, 1]).astype(np.float32),
        "next_sentence_weights": rng.choice([0.0, 0.5, 1.0], size).astype(np.float32),
    }


def places():
    """(row, number in the row, first token, length) of every sequence."""
    for row, lengths in enumerate(ROWS):
        starts = np.cumsum(lengths) - lengths
        yield from ((row, *each) for each in zip(range(len(lengths)), starts, lengths, strict=True))


def packed(alone):
    """The same sequences, several to a row."""
    widths = dict.fromkeys(alone, MOST * PLACES)
    widths |= dict.fromkeys(("sequence_starts", "next_sentence_labels"), MOST)
    widths |= {"next_sentence_weights": MOST, "segment_index": LENGTH, "position_ids": LENGTH}
    widths |= dict.fromkeys(("input_ids", "input_mask", "segment_ids"), LENGTH)
    kinds = {name: np.float32 if name.endswith("weights") else np.int32 for name in widths}
    rows = {name: np.zeros((len(ROWS), width), kinds[name]) for name, width in widths.items()}
    for i, (row, number, start, length) in enumerate(places()):
        tokens, predictions = slice(start, start + length), predictions_of(number)
        for name in ("input_ids", "input_mask", "segment_ids"):
            rows[name][row, tokens] = alone[name][i, :length]
        rows["segment_index"][row, tokens] = number + 1
        rows["position_ids"][row, tokens] = np.arange(length)
        rows["masked_lm_positions"][row, predictions] = alone["masked_lm_positions"][i] + start
        for name in ("masked_lm_ids", "masked_lm_weights"):
            rows[name][row, predictions] = alone[name][i]
        rows["sequence_starts"][row, number] = start
        rows["next_sentence_labels"][row, number] = alone["next_sentence_labels"][i, 0]
        rows["next_sentence_weights"][row, number] = alone["next_sentence_weights"][i]
    rows["input_ids"] += 7 * (1 - rows["input_mask"])  # no matter which ids the padding has
    return rows


def predictions_of(number):
    """The places for masked words of a row's sequence."""
    return slice(number * PLACES, (number + 1) * PLACES)


def outputs(model, batch):
    """What encoder and heads return, as arrays."""
    encoded = {k: v.numpy() for k, v in model.encoder(batch, training=False).items()}
    return encoded | {k: v.numpy() for k, v in model(batch, training=False).items()}


def by_sequence(found):
    """Of the outputs of packed rows, those of each sequence in the order of `sequences`."""
    for row, number, start, length in places():
        yield {
            "sequence_output": found["sequence_output"][row, start : start + length],
            "pooled_output": found["pooled_output"][row, number],
            "masked_lm_logits": found["masked_lm_logits"][row, predictions_of(number)],
            "next_sentence_logits": found["next_sentence_logits"][row, number],
        }


@pytest.mark.parametrize("kind", KINDS)
def test_outputs(float64, kind):
    keras.utils.set_random_seed(1)
    model = tiny_model(kind, **SIZES, initializer_range=0.2)  # outputs of the size of 1
    alone = sequences()
    expected = outputs(model, alone)
    lengths = sum(ROWS, ())
    for i, found in enumerate(by_sequence(outputs(model, packed(alone)))):
        for name, value in found.items():
            own = expected[name][i]
            own = own[: lengths[i]] if name == "sequence_output" else own
            assert np.abs(own).max() > 0.05
            np.testing.assert_allclose(value, own, atol=1e-9, rtol=0, err_msg=name)


@pytest.mark.parametrize("kind", (slow("bert"), "albert"))
def test_losses_and_gradients(float64, kind):
    alone = sequences()
    apart, together = (
        gradients_of(make_step(kind, sizes=SIZES, recompute="block"), batch)
        for batch in (alone, packed(alone))
    )
    assert together[0] == pytest.approx(apart[0], rel=1e-9)
    assert together[0]["masked_lm_weight"] == pytest.approx(alone["masked_lm_weights"].sum())
    assert_close(together[1], apart[1], 1e-9, floor=1e-3)


@pytest.mark.parametrize("count", (1, 2))
def test_some_of_the_features_are_an_error(count):
    model, rows = tiny_model(), packed(sequences())
    for names in itertools.combinations(PACKED_INPUTS, count):
        lacking = {name: value for name, value in rows.items() if name not in names}
        with pytest.raises(ValueError, match="Packed rows must have segment_index, position_ids"):
            model(lacking)


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
