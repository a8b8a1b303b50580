"""Replaced-token detection computes what transformers' two networks do by the paper's formula."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoint import google_name, google_variables
from bert_tf.summaries.histograms import layer_groups
from electra_tf import ElectraConfig, ElectraModel, ReplacedTokensModel, replaced_tokens
from electra_tf.replaced_tokens import corrupt, row_numbers, sample
from model_formats.transformers_files.names import ELECTRA_NAMES
from tests.support.golden import inputs_of
from tests.support.paths import TEST_DATA
from tests.support.tiny_models import (
    SIZES,
    assert_close,
    gradients_of,
    make_optimizer,
    random_batch,
    step_of,
    tensors,
)

CONFIG = ElectraConfig(
    vocab_size=41, embedding_size=8, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
    intermediate_size=20, max_position_embeddings=12, generator_size=0.5, hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)  # fmt: skip


def tiny(dropout=0.0, **changes):
    """A model of both networks with one layer each."""
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    sizes = {**SIZES, "num_hidden_layers": 1, "embedding_size": 16, "generator_size": 0.5}
    return ReplacedTokensModel(ElectraModel(ElectraConfig(**{**sizes, **rates, **changes})))


@pytest.fixture(scope="module")
def theirs():
    """The arrays of tests/data/electra/write_arrays.py."""
    with np.load(TEST_DATA / "electra" / "replaced_tokens.npz") as file:
        return dict(file)


def by_google_names(theirs, kind):
    """Weights or gradients of both networks of transformers."""
    found = {}
    for key, array in theirs.items():
        if not key.startswith(f"{kind}/"):
            continue
        _, network, name = key.split("/")
        google = google_name(name, ELECTRA_NAMES)
        if network == "generator":
            google = google.replace("cls/predictions/transform/", "generator_predictions/")
            google = google.replace("cls/predictions/", "generator_predictions/")
            if "/embeddings/" not in google:
                google = google.replace("electra/", "generator/")
        found[google] = array.T if google.endswith("/kernel") else array
    return found


@pytest.mark.usefixtures("eagerly")
def test_losses_and_gradients(float64, theirs, monkeypatch):
    model = ReplacedTokensModel(ElectraModel(CONFIG))
    variables, weights = google_variables(model), by_google_names(theirs, "weight")
    assert set(variables) == set(weights)
    for name, variable in variables.items():
        variable.assign(weights[name])
    monkeypatch.setattr(replaced_tokens, "sample", lambda *_: tf.constant(theirs["drawn"]))
    batch = inputs_of(theirs)
    outputs = model(tensors(batch), training=True)
    for name in ("replaced", "masked_lm_logits"):
        np.testing.assert_allclose(outputs[name], theirs[name], atol=1e-10, err_msg=name)
    np.testing.assert_array_equal(outputs["corrupted_ids"], theirs["corrupted"])
    tokens = batch["input_mask"] > 0
    found = outputs["discriminator_logits"].numpy()[tokens]
    np.testing.assert_allclose(found, theirs["discriminator_logits"][tokens], atol=1e-10)

    step = step_of(model, make_optimizer("adamw", model))
    sums, gradients = gradients_of(step, batch)
    for name in ("masked_lm_loss", "discriminator_loss"):
        assert sums[name] == pytest.approx(float(theirs[name]), rel=1e-12)
    assert float(step(tensors(batch))["loss"]) == pytest.approx(float(theirs["loss"]), rel=1e-12)
    paths = {variable.path: name for name, variable in variables.items()}
    gradients = {paths[path]: gradient for path, gradient in gradients.items()}
    expected = by_google_names(theirs, "gradient")
    assert min(np.abs(g).max() for g in expected.values()) < 1e-10  # of the keys' bias: no gradient
    assert_close(gradients, expected, 1e-10, floor=1e-3)


@pytest.mark.parametrize("xla", (False, True))
def test_pieces_are_drawn_as_often_as_the_softmax_says(xla):
    """30,000 draws from a distribution with rare pieces: each count within five deviations."""
    count, shares = 30_000, np.array([0.5, 0.3, 0.15, 0.04, 0.009, 0.001, 0.0])
    logits = np.log(np.maximum(shares, 1e-30)).astype(np.float32) + 3
    draw = tf.function(sample, jit_compile=xla)
    for seed in ((1, 2), (1, 3)):
        rows = tf.constant(np.random.default_rng(seed[1]).integers(0, 2**31, count), tf.int32)
        drawn = draw(tf.tile(logits[None], [count, 1]), rows, tf.constant(seed, tf.uint32))
        counts = np.bincount(drawn, minlength=len(shares))
        deviation = np.sqrt(count * shares * (1 - shares))
        assert (np.abs(counts - count * shares) <= 5 * deviation).all(), counts
        assert counts[-2] > 0


def test_what_is_drawn_from_no_numbers_is_a_piece():
    """Of logits that overflowed in float16: the step is skipped, so no row must be out of range."""
    logits = np.zeros([2, 3, 7], np.float32)
    logits[0], logits[1, 0] = np.nan, np.inf
    drawn = sample(tf.constant(logits), tf.zeros([2, 3], tf.int32), (1, 2)).numpy()
    assert (drawn >= 0).all() and (drawn < 7).all()


def test_what_is_drawn_for_a_row_does_not_depend_on_the_others():
    batch = random_batch(3, padding=False)
    logits = tf.random.stateless_normal([8, 4, 60], (1, 2))
    names = ("input_ids", "masked_lm_positions")

    def draw(some, seed=(5, 6)):
        rows = row_numbers({name: batch[name][some] for name in names})
        return sample(tf.gather(logits, some), rows, seed).numpy()

    whole = draw(np.arange(8))
    np.testing.assert_array_equal(draw(np.array([6, 1])), whole[[6, 1]])
    assert (draw(np.arange(8), (5, 7)) != whole).any()
    # Equal logits are not drawn from alike: rows and places have noise of their own.
    rows = row_numbers({name: batch[name] for name in names})
    drawn = sample(tf.zeros([8, 4, 10_000]), rows, (5, 6)).numpy()
    different = {(i, p) for i, row in enumerate(batch["masked_lm_positions"]) for p in row}
    assert len(set(drawn.ravel())) >= len(different) - 1


def test_labels_of_replaced_pieces():
    """One drawn right is an original; a place without weight, and one named twice, are no trap."""
    inputs = {
        "input_ids": [[1, 4, 7, 4, 9], [1, 4, 7, 8, 0]],
        "masked_lm_positions": [[1, 3, 0, 2], [1, 1, 0, 0]],
        "masked_lm_ids": [[11, 12, 0, 7], [11, 11, 0, 0]],
        "masked_lm_weights": [[1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]],
    }
    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    drawn = tf.constant([[11, 13, 30, 31], [14, 14, 30, 30]])
    found = corrupt(inputs, drawn)
    assert found["corrupted_ids"].numpy().tolist() == [[1, 11, 31, 13, 9], [1, 14, 7, 8, 0]]
    assert found["replaced"].numpy().tolist() == [[0, 0, 1, 1, 0], [0, 1, 0, 0, 0]]


def test_draws_change_while_training_and_not_in_an_evaluation():
    keras.utils.set_random_seed(1)
    model, batch = tiny(), tensors(random_batch(0))
    one, two = (model(batch, training=True)["corrupted_ids"].numpy() for _ in range(2))
    assert (one != two).any()
    whole = model(batch, training=False)
    half = model({name: value[4:] for name, value in batch.items()}, training=False)
    np.testing.assert_array_equal(whole["corrupted_ids"][4:], half["corrupted_ids"])


def test_histograms_tell_the_networks_apart():
    weights = tiny().trainable_variables
    groups = layer_groups(weights)
    assert list(groups) == [
        "embeddings", "embedding_projection", "layer_0", "generator_layer_0", "masked_lm",
        "discriminator",
    ]  # fmt: skip
    assert {weights[i].path.split("/")[0] for i in groups["layer_0"]} == {"electra"}
    assert {weights[i].path.split("/")[0] for i in groups["generator_layer_0"]} == {"generator"}


def test_replicas_draw_apart():
    """The same rows on both devices: what is drawn for them differs."""
    model = tiny()
    step = step_of(model, make_optimizer("adamw", model))
    place = [v is model.seed_generator.state for v in step.seed_states].index(True)
    seeds = [step._seeds(tf.constant(7, tf.int64), tf.constant(r)).numpy() for r in (0, 1)]
    batch = random_batch(0)
    logits = tf.zeros([8, 4, 60])
    one, two = (sample(logits, row_numbers(batch), each[0, place]).numpy() for each in seeds)
    assert (one != two).mean() > 0.9
