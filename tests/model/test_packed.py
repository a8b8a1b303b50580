"""Packed rows, and a last block run at the predictions alone: outputs and gradients stay the same.

Shapes: B rows, T tokens, H hidden, S sequences of a row, P predictions.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.encoder import PACKED_INPUTS
from bert_tf.layers import TransformerBlock, gather_positions
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


def sequences(seed=0):
    """Each sequence in a separate row, padded to the longest: features [B, ...]."""
    rng = np.random.default_rng(seed)
    lengths = np.array(sum(ROWS, ()))
    size = len(lengths)
    mask = (np.arange(POSITIONS) < lengths[:, None]).astype(np.int32)
    counts = rng.integers(1, PLACES + 1, size)
    return {
        "input_ids": (rng.integers(1, 60, (size, POSITIONS)) * mask).astype(np.int32),
        "input_mask": mask,
        "segment_ids": (rng.integers(0, 2, (size, POSITIONS)) * mask).astype(np.int32),
        "masked_lm_positions": rng.integers(0, lengths[:, None], (size, PLACES)).astype(np.int32),
        "masked_lm_ids": rng.integers(1, 60, (size, PLACES)).astype(np.int32),
        # Weights that are not counts: each sequence must keep its own.
        "masked_lm_weights": (
            (np.arange(PLACES) < counts[:, None]) * rng.uniform(0.5, 2, (size, PLACES))
        ).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (size, 1)).astype(np.int32),
        "next_sentence_weights": rng.choice([0.0, 0.5, 1.0], size).astype(np.float32),
    }


def places():
    """(row, number in the row, first token, length) of every sequence."""
    for row, lengths in enumerate(ROWS):
        starts = np.cumsum(lengths) - lengths
        yield from ((row, *each) for each in zip(range(len(lengths)), starts, lengths, strict=True))


def packed(alone):
    """The same sequences, several to a row."""
    integers, floats = (
        lambda width, kind=kind: np.zeros((len(ROWS), width), kind)
        for kind in (np.int32, np.float32)
    )
    rows = {name: integers(LENGTH) for name in ("input_ids", "input_mask", "segment_ids")}
    rows |= {"segment_index": integers(LENGTH), "position_ids": integers(LENGTH)}
    rows |= {name: integers(MOST * PLACES) for name in ("masked_lm_positions", "masked_lm_ids")}
    rows |= {"masked_lm_weights": floats(MOST * PLACES), "sequence_starts": integers(MOST)}
    rows |= {"next_sentence_labels": integers(MOST), "next_sentence_weights": floats(MOST)}
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


def assert_same_outputs(kind, tolerance):
    keras.utils.set_random_seed(1)
    model = tiny_model(kind, **SIZES, initializer_range=0.2)  # outputs of the size of 1
    alone = sequences()
    expected = outputs(model, alone)
    lengths = sum(ROWS, ())
    for i, found in enumerate(by_sequence(outputs(model, packed(alone)))):
        for name, value in found.items():
            own = (
                expected[name][i, : lengths[i]] if name == "sequence_output" else expected[name][i]
            )
            assert np.abs(own).max() > 0.05
            np.testing.assert_allclose(value, own, atol=tolerance, rtol=0, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs(kind):
    assert_same_outputs(kind, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_in_float64(float64, kind):
    assert_same_outputs(kind, 1e-9)


def assert_same_gradients(kind, tolerance, floor, **options):
    alone = sequences()
    apart, together = (
        gradients_of(make_step(kind, sizes=SIZES, **options), batch)
        for batch in (alone, packed(alone))
    )
    assert together[0] == pytest.approx(apart[0], rel=tolerance)
    assert together[0]["masked_lm_weight"] == pytest.approx(alone["masked_lm_weights"].sum())
    assert_close(together[1], apart[1], tolerance, floor)


@pytest.mark.parametrize("kind", (slow("bert"), "albert"))
def test_losses_and_gradients_in_float64(float64, kind):
    assert_same_gradients(kind, 1e-9, floor=1e-3, recompute="block")


@pytest.mark.parametrize("kind", KINDS)
def test_other_sequences_do_not_matter_at_all(kind):
    model, alone = tiny_model(kind, **SIZES, initializer_range=0.2), sequences()
    before = list(by_sequence(outputs(model, packed(alone))))
    changed = 5  # the third of the second row, with neighbours on both sides
    rng = np.random.default_rng(1)
    alone["input_ids"][changed] = rng.integers(1, 60, POSITIONS)
    alone["segment_ids"][changed] ^= 1
    rows = packed(alone)
    rows["input_ids"] += 7 * (1 - rows["input_mask"])  # the padding gets other ids
    for i, (one, other) in enumerate(zip(before, by_sequence(outputs(model, rows)), strict=True)):
        for name in one:
            assert np.array_equal(one[name], other[name]) == (i != changed), (i, name)


@pytest.mark.parametrize("name", ("segment_index", "position_ids"))
def test_the_features_are_used(name):
    """Rows whose sequences see each other, or whose positions run on, give something else."""
    model, rows = (
        tiny_model(max_position_embeddings=LENGTH, initializer_range=0.2),
        packed(sequences()),
    )
    right = list(by_sequence(outputs(model, rows)))
    wrong = {"segment_index": rows["input_mask"], "position_ids": np.arange(LENGTH)[None]}[name]
    rows[name] = np.broadcast_to(wrong, rows[name].shape).astype(np.int32)
    moved = [
        np.abs(one["pooled_output"] - other["pooled_output"]).max() > 1e-3
        for one, other in zip(right, by_sequence(outputs(model, rows)), strict=True)
    ]
    # A row's first sequence has its positions all the same.
    firsts = [number == 0 for _, number, _, _ in places()]
    assert moved == ([True] * len(moved) if name == "segment_index" else [not f for f in firsts])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", (1, 2))
def test_some_of_the_features_are_an_error(kind, count):
    model, rows = tiny_model(kind), packed(sequences())
    for i in range(len(PACKED_INPUTS)):
        lacking = dict(rows)
        for name in (PACKED_INPUTS * 2)[i : i + count]:
            del lacking[name]
        with pytest.raises(ValueError, match="Packed rows must have segment_index, position_ids"):
            model(lacking)


def test_rows_that_are_not_packed_must_fit():
    rows = {k: v for k, v in packed(sequences()).items() if k not in PACKED_INPUTS}
    with pytest.raises(ValueError, match=f"length={LENGTH}, max_position_embeddings={POSITIONS}"):
        tiny_model(**SIZES)(rows)


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
