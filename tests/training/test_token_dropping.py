"""Token dropping computes what transformers' blocks do by the paper's wiring."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import BertConfig, BertModel, PretrainingModel
from bert_tf.checkpoint import google_variables
from bert_tf.costs.dropped_tokens import first_short_call, kept_tokens, lengths_of_calls
from bert_tf.costs.flops import training_flops
from bert_tf.layers import BlockInputs, gather_positions
from bert_tf.memory_estimate import estimate_bytes
from bert_tf.training.mixed_precision import LossScale
from bert_tf.training.token_dropping import FEATURE, SUMS, TokenDropping, is_special, most_important
from tests.support.crosses import slow
from tests.support.golden import by_google_names, inputs_of
from tests.support.paths import TEST_DATA
from tests.support.tiny_models import (
    assert_close,
    computing_in,
    first_state,
    forward_backward,
    make_optimizer,
    random_batch,
    step_of,
    tensors,
    tiny_model,
)

CONFIG = BertConfig(
    vocab_size=41, hidden_size=8, num_hidden_layers=5, num_attention_heads=2, intermediate_size=12,
    max_position_embeddings=16, type_vocab_size=2, hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)  # fmt: skip
# Nine of sixteen tokens are kept.
SHARE, KEPT = 0.45, 9


@pytest.fixture(scope="module")
def theirs():
    """The arrays of tests/data/token_dropping/write_steps.py."""
    with np.load(TEST_DATA / "token_dropping" / "arrays.npz") as file:
        return dict(file)


def dropping_step(share=0.5, kind="bert", strategy=None, policy=None, scale=None, **options):
    """A step that drops tokens of a tiny model of four layers."""
    strategy = strategy or tf.distribute.get_strategy()
    sizes = {"num_hidden_layers": 4, "dropout": options.pop("dropout", 0.0)}
    keras.utils.set_random_seed(3)
    with strategy.scope(), computing_in(policy):
        model = tiny_model(kind, **sizes)
        optimizer = make_optimizer("adamw", model)
        dropping = None if share is None else TokenDropping(share, 60)
        loss_scale = LossScale() if scale else None
    own = {"loss_scale": loss_scale, "token_dropping": dropping}
    return step_of(model, optimizer, strategy, **own, **options)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("case", ("plain", "packed"))
@pytest.mark.parametrize("recompute", ("none", "block"))
def test_loss_and_gradients(float64, theirs, case, recompute):
    model = PretrainingModel(BertModel(CONFIG))
    variables, weights = google_variables(model), by_google_names(theirs, "weight")
    for name, variable in variables.items():
        variable.assign(weights[name])
    dropping = TokenDropping(SHARE, CONFIG.vocab_size)
    dropping.losses.assign(theirs["average"])
    optimizer = make_optimizer("adamw", model)
    step = step_of(model, optimizer, token_dropping=dropping, recompute=recompute)
    batch = inputs_of(theirs, f"{case}/input/")
    batch = {**tensors(batch), FEATURE: tf.constant(theirs["average"])}
    kept = most_important(batch, KEPT)
    np.testing.assert_array_equal(kept, theirs[f"{case}/kept"])
    assert kept_tokens(16, SHARE, 3, 2) == KEPT and first_short_call(5) == 1
    sums, gradients = forward_backward(step, batch)
    weight = batch["masked_lm_weights"].numpy().sum()
    found = float(sums["masked_lm_loss"]) / (weight + 1e-5)
    assert found == pytest.approx(float(theirs[f"{case}/loss"]), rel=1e-12)
    pairs = zip(variables, gradients, strict=True)
    found = {name: g.numpy() for name, g in pairs if g is not None}
    expected = by_google_names(theirs, f"{case}/gradient")
    expected = {name: expected.get(name, np.zeros_like(found[name])) for name in found}
    assert sum(np.abs(g).max() > 1e-6 for g in expected.values()) > 70
    assert_close(found, expected, 1e-10, floor=1e-4)
    after = dropping.updated(tf.constant(theirs["average"]), sums[SUMS])
    np.testing.assert_allclose(after, theirs[f"{case}/average_after"], rtol=1e-12)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("kind", ("bert", slow("albert")))
def test_with_nothing_dropped_it_is_the_plain_step(float64, kind):
    states = []
    for share in (None, 0.0):
        step = dropping_step(share, kind, dropout=0.1)
        for i in range(2):
            step(tensors(random_batch(i)))
        states.append(first_state(step))
    assert_close(states[1], states[0], 1e-12, floor=1e-4)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("policy", ("mixed_bfloat16", slow("mixed_float16")))
def test_half_precision(policy):
    """A gradient that is not finite leaves the average as it was."""
    step = dropping_step(policy=policy, scale=policy == "mixed_float16")
    before = step.token_dropping.losses.numpy()
    step(tensors(random_batch(0)))
    after = step.token_dropping.losses.numpy()
    assert np.isfinite(after).all() and (after != before).any()
    step.weights[0].assign(step.weights[0] * np.nan)
    assert float(step(tensors(random_batch(1)))["skipped"]) == 1
    np.testing.assert_array_equal(step.token_dropping.losses.numpy(), after)


def test_the_average_counts_used_predictions_alone():
    dropping = TokenDropping(0.5, 5)
    ids, losses = tf.constant([[3, 3], [3, 4]]), tf.constant([[2.0, 5.0], [4.0, 1.0]])
    sums = dropping.loss_sums(ids, losses, tf.constant([[1.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(sums, [[0, 0, 0, 6, 0], [0, 0, 0, 2, 0]])
    found = dropping.updated(tf.constant(dropping.losses), sums).numpy()
    np.testing.assert_allclose(found, [10, 10, 10, 0.995 * 10 + 0.005 * 3, 10])


def padded_row():
    """A row whose third token is masked; the padding's id, never predicted, is as at the start."""
    average = np.full(12, 10.0)
    average[[7, 9]] = 1, 2
    return {
        "input_ids": tf.constant([[2, 7, 8, 9, 3, 0, 0, 0]]),
        "input_mask": tf.constant([[1, 1, 1, 1, 1, 0, 0, 0]]),
        "segment_ids": tf.zeros([1, 8], tf.int32),
        "masked_lm_positions": tf.constant([[2, 1]]),
        "masked_lm_weights": tf.constant([[1.0, 0.0]]),
        FEATURE: tf.constant(average),
    }


def test_the_most_important_tokens_and_padding_last():
    for count, expected in ((1, [2]), (3, [0, 2, 4]), (4, [0, 2, 3, 4]), (6, range(6))):
        np.testing.assert_array_equal(most_important(padded_row(), count), [[*expected]])


def test_kept_tokens_keep_their_positions():
    """For encoders whose blocks read them."""
    seen = []

    def call_block(block, x, inputs, training=None):
        seen.append(inputs)
        return x if inputs.positions is None else gather_positions(x, inputs.positions)

    run = TokenDropping(0.6, 12).run_block(call_block, padded_row(), 4)
    inputs = BlockInputs(tf.zeros([1, 1, 1, 8]), tf.constant([[0, 1, 2, 0, 1, 0, 0, 0]]))
    x = start = tf.range(8.0)[None, :, None]
    for _ in range(4):
        x = run(None, x, inputs)
    assert [len(each.position_ids[0]) for each in seen] == [8, 8, 5, 8]
    np.testing.assert_array_equal(seen[2].position_ids, [[0, 1, 2, 0, 1]])
    np.testing.assert_array_equal(x, start)


def test_special_tokens_are_found_without_a_tokenizer():
    batch = {
        "input_mask": tf.constant([[1, 1, 1, 1, 1, 0], [1] * 6]),
        "segment_ids": tf.constant([[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1]]),
    }
    expected = [[1, 0, 1, 0, 1, 0], [1, 0, 0, 0, 1, 1]]
    np.testing.assert_array_equal(is_special(batch), np.array(expected, bool))
    batch["segment_index"] = tf.constant([[1, 1, 1, 1, 1, 0], [1, 1, 2, 2, 2, 2]])
    expected[1] = [1, 1, 1, 0, 1, 1]
    np.testing.assert_array_equal(is_special(batch), np.array(expected, bool))


def test_costs():
    """The Model Garden's layers: five whole, one that reads all, five short, one whole."""
    lengths = lengths_of_calls(12, 512, 0.5, 77)
    assert lengths == [(512, 512)] * 5 + [(512, 256)] + [(256, 256)] * 5
    assert kept_tokens(16, 0.9, 4, 3) == 13 and kept_tokens(16, 0.9, 4) == 7
    base = BertConfig.from_preset("base", 30522)
    plain, dropping = (training_flops(base, 512, 77, 1, share) for share in (0.0, 0.5))
    assert 0.74 < dropping / plain < 0.80
    assert training_flops(base, 512, 77, 1, 1e-9) == plain
    whole, less = (estimate_bytes(base, 8, 512, 77, token_dropping=share) for share in (0.0, 0.5))
    assert 0.7 < less / whole < 0.9
