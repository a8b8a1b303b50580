"""What holds for every head: files, configuration, dropout, however a batch is computed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import load_google_checkpoint
from bert_tf.checkpoint import save_google_checkpoint
from tests.support.crosses import but_slow, quick_by_pairs
from tests.support.task_heads import HEADS, tagged_batch
from tests.support.tiny_models import (
    ONE_LAYER,
    assert_close,
    computing_in,
    tiny_model,
    weights_of,
)
from tests.support.training_checks import (
    assert_split_changes_nothing,
    assert_xla_and_recomputation_change_nothing,
)

EVERY = pytest.mark.parametrize("name", HEADS)
ON_BOTH = pytest.mark.parametrize(("name", "kind"), quick_by_pairs(HEADS, ("bert", "albert")))


@ON_BOTH
def test_checkpoints(name, kind, tmp_path):
    """A pre-trained encoder under a new head; then the whole model."""
    pretrained, model = tiny_model(kind), HEADS[name].make(kind)
    save_google_checkpoint(pretrained, str(tmp_path / "pretrained.ckpt"))
    before, encoder = weights_of(model), weights_of(pretrained.encoder)
    report = load_google_checkpoint(model.encoder, str(tmp_path / "pretrained.ckpt"))
    assert all(name.startswith("cls/") for name in report.ignored) and not report.missing
    assert set(before) > set(encoder)
    assert_close(weights_of(model), {**before, **encoder}, 0, 0)
    save_google_checkpoint(model, str(tmp_path / "model.ckpt"))
    again = HEADS[name].make(kind)
    report = load_google_checkpoint(again, str(tmp_path / "model.ckpt"))
    assert set(report.loaded) == set(before) and not report.ignored
    assert_close(weights_of(again), weights_of(model), 0, 0)


@EVERY
def test_configuration_round_trip(name):
    head = HEADS[name]
    options = {"dropout": 0.3} if head.has_dropout else {}
    options |= {"start_n_top": 3, "end_n_top": 2} if name == "beams" else {}
    model = head.make(**options)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model))
    assert type(again) is head.model and again.get_config() == model.get_config()
    assert again.config == model.config
    assert not head.has_dropout or again.head.dropout.rate == 0.3
    for option, value in {**head.options, **options}.items():
        assert option == "dropout" or getattr(again, option) == value
    with pytest.raises(ValueError, match="two names. Received: 'bert' twice"):
        head.make(name="bert")


@EVERY
def test_dropout_is_on_in_training_alone(name):
    keras.utils.set_random_seed(0)
    head = HEADS[name]
    model, batch = head.make(), head.batch  # of an encoder without dropout
    plain, again, trained = (model(batch, training=on) for on in (None, False, True))
    for key, value in plain.items():
        np.testing.assert_array_equal(again[key], value)
    different = [np.abs(np.asarray(trained[key] - plain[key])).max() > 1e-4 for key in plain]
    assert any(different) == head.has_dropout


@EVERY
def test_initial_weights(name):
    """Google's deviation of 0.02 whatever the configuration says, for beams the configuration's."""
    keras.utils.set_random_seed(0)
    model = HEADS[name].make(sizes={"hidden_size": 160, "initializer_range": 0.5})
    deviation = 0.5 if name == "beams" else 0.02
    for variable in model.head.trainable_variables:
        value = variable.numpy()
        if variable.name.endswith("bias"):
            assert not value.any()
        elif value.ndim > 1:
            assert np.abs(value).max() <= 2 * deviation  # the cut leaves 0.8796 of it
            assert value.std() == pytest.approx(0.8796 * deviation, rel=0.15)


@pytest.mark.parametrize("name", [name for name in HEADS if name != "beams"])
def test_logits_are_exact_in_a_model_that_computes_in_bfloat16(name):
    keras.utils.set_random_seed(0)
    head = HEADS[name]
    with computing_in("mixed_bfloat16"):
        model = head.without_dropout()
    hidden = model.encoder(tagged_batch())["sequence_output"]
    assert hidden.dtype == tf.bfloat16
    weights, bias = (v.numpy().astype(np.float64) for v in model.head.trainable_variables)
    expected = tf.cast(hidden, tf.float64).numpy() @ weights.T + bias
    np.testing.assert_allclose(model.head(hidden), expected, atol=1e-6, rtol=0)
    for logits in model(head.batch).values():
        assert logits.dtype == tf.float32
        assert np.abs(logits - tf.cast(tf.cast(logits, tf.bfloat16), tf.float32)).max() > 0


@pytest.mark.parametrize("name", but_slow(HEADS, ["scores"]))
def test_a_batch_is_a_batch_however_it_is_split(name, float64):
    """Rows of tags have different numbers of pieces: a mean of the parts' means would differ."""
    head = HEADS[name]
    (weights,) = (value for key, value in head.batch.items() if key.endswith("weights"))
    sums, make = (head.weight, weights.sum()), lambda: head.without_dropout(**ONE_LAYER)
    assert_split_changes_nothing(make, head.batch, sums, head.floor)


@pytest.mark.slow
@EVERY
def test_xla_and_recomputation_change_nothing(name, float64):
    head, make = HEADS[name], lambda: HEADS[name].without_dropout(**ONE_LAYER)
    assert_xla_and_recomputation_change_nothing(make, head.batch, head.floor)
