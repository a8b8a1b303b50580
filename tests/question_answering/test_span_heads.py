"""Heads that find answers: how they start, how a batch is split, precision, dropout."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import load_google_checkpoint
from bert_tf.checkpoint import google_variables, save_google_checkpoint
from finetuning.question_answering.beam_head import BeamSpanModel, masked
from finetuning.question_answering.span_head import SpanModel
from tests.support.tiny_models import ONE_LAYER, assert_close, computing_in, tiny_model
from tests.support.training_checks import (
    assert_split_changes_nothing,
    assert_xla_and_recomputation_change_nothing,
)

MODELS = (SpanModel, BeamSpanModel)


def span_model(model_class=SpanModel, kind="bert", **changes):
    options = {"dropout": 0.0} if model_class is BeamSpanModel else {}
    return model_class(tiny_model(kind, **changes).encoder, **options)


def asked_batch(size=8, length=12):
    """Random examples; the last two only fill the batch."""
    rng = np.random.default_rng(1)
    mask = (np.arange(length) < rng.integers(8, length + 1, size)[:, None]).astype(np.int32)
    places = np.arange(length)
    p_mask = np.where((places == 0) | (places > 3), 1 - mask, 1).astype(np.int32)
    starts = rng.integers(4, 6, size)
    return {
        "input_ids": (rng.integers(1, 60, (size, length)) * mask).astype(np.int32),
        "input_mask": mask,
        "segment_ids": (places > 3).astype(np.int32) * mask,
        "p_mask": p_mask,
        "start_positions": starts.astype(np.int32),
        "end_positions": (starts + rng.integers(0, 2, size)).astype(np.int32),
        "is_impossible": rng.integers(0, 2, size).astype(np.int32),
        "span_weights": (np.arange(size) < size - 2).astype(np.float32),
    }


# A softmax over positions is the same whatever is added to all of them, so that some biases have
# a gradient of rounding alone: what the largest entry counts as at least.
FLOOR = 1e-3


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_only_the_head_is_new_after_pre_training(model_class, kind, tmp_path):
    pretrained = tiny_model(kind)
    save_google_checkpoint(pretrained, str(tmp_path / "model.ckpt"))
    model = span_model(model_class, kind)
    report = load_google_checkpoint(model.encoder, str(tmp_path / "model.ckpt"))
    assert all(name.startswith("cls/") for name in report.ignored) and not report.missing
    encoder = {n: v.numpy() for n, v in google_variables(pretrained.encoder).items()}
    loaded = {n: v.numpy() for n, v in google_variables(model).items() if n in encoder}
    assert_close(loaded, encoder, 0, 0)


@pytest.mark.parametrize("model_class", MODELS)
def test_all_comes_back_from_a_file(model_class, tmp_path):
    keras.utils.set_random_seed(0)
    model = span_model(model_class)
    save_google_checkpoint(model, str(tmp_path / "model.ckpt"))
    again = span_model(model_class)
    report = load_google_checkpoint(again, str(tmp_path / "model.ckpt"))
    assert len(report.loaded) == len(google_variables(model)) and not report.ignored
    batch = asked_batch()
    for name, value in model(batch).items():
        np.testing.assert_array_equal(again(batch)[name], value)


def test_initial_heads():
    """SQuAD 1.1's head starts from Google's 0.02, the other from the configuration's own."""
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 160, "initializer_range": 0.5}
    share = 0.8796  # of the deviation: what is left when the normal is cut at two of it
    weights = span_model(SpanModel, **sizes).head.output_weights.numpy()
    assert weights.std() == pytest.approx(0.02 * share, rel=0.1) and np.abs(weights).max() <= 0.04
    head = span_model(BeamSpanModel, **sizes).head
    for kernel in (head.end_hidden_kernel, head.answerable_hidden_kernel, head.start_kernel):
        assert kernel.numpy().std() == pytest.approx(0.5 * share, rel=0.2)
    assert not head.end_hidden_bias.numpy().any()


def test_beams_are_the_best_of_all_pairs():
    """Every start with every end, one by one, by the head that is given the start."""
    model, batch = span_model(BeamSpanModel), asked_batch(4)
    del batch["start_positions"]
    beams = {name: value.numpy() for name, value in model(batch).items()}
    ends, starts = [], None
    for start in range(12):
        told = model({**batch, "start_positions": np.full(4, start, np.int32)})
        ends.append(tf.nn.log_softmax(told["end_logits"]).numpy())
        starts = tf.nn.log_softmax(told["start_logits"]).numpy()
    for row in range(4):
        order = np.argsort(-starts[row], kind="stable")[:5]
        assert beams["start_top_index"][row].tolist() == order.tolist()
        np.testing.assert_allclose(beams["start_top_log_probs"][row], starts[row][order], atol=1e-5)
        for number, start in enumerate(order):
            best = np.argsort(-ends[start][row], kind="stable")[:5]
            part = slice(5 * number, 5 * number + 5)
            assert beams["end_top_index"][row][part].tolist() == best.tolist()
            found = beams["end_top_log_probs"][row][part]
            np.testing.assert_allclose(found, ends[start][row][best], atol=1e-5)


def test_masked_positions():
    logits = masked(tf.constant([[1.0, 2.0]]), tf.constant([[0, 1]]))
    assert logits.numpy().tolist() == [[1.0, pytest.approx(-1e30)]]


def test_dropout_is_on_in_training_alone():
    keras.utils.set_random_seed(0)
    model = BeamSpanModel(tiny_model().encoder)  # of an encoder without dropout
    assert model.head.dropout.rate == 0.1
    batch = asked_batch()
    plain, learning = model(batch), model(batch, training=True)
    np.testing.assert_array_equal(model(batch, training=False)["cls_logits"], plain["cls_logits"])
    assert np.abs(learning["cls_logits"] - plain["cls_logits"]).max() > 1e-4
    np.testing.assert_array_equal(learning["end_logits"], plain["end_logits"])


@pytest.mark.slow
@pytest.mark.parametrize("model_class", MODELS)
def test_a_batch_is_a_batch_however_it_is_split(model_class, float64):
    weight = ("span_weight", 6)
    assert_split_changes_nothing(
        lambda: span_model(model_class, **ONE_LAYER), asked_batch(), weight, FLOOR
    )


@pytest.mark.slow
@pytest.mark.parametrize("model_class", (SpanModel, BeamSpanModel))
def test_xla_and_recomputation_change_nothing(model_class, float64):
    assert_xla_and_recomputation_change_nothing(
        lambda: span_model(model_class, **ONE_LAYER), asked_batch(), FLOOR
    )


@pytest.mark.parametrize("model_class", MODELS)
def test_logits_are_exact_in_a_model_that_computes_in_bfloat16(model_class):
    keras.utils.set_random_seed(0)
    with computing_in("mixed_bfloat16"):
        model = span_model(model_class)
    batch = asked_batch()
    x = model.encoder(batch)["sequence_output"]
    assert x.dtype == tf.bfloat16
    out = model(batch)
    assert {value.dtype for value in out.values()} == {tf.float32}
    x = tf.cast(x, tf.float64).numpy()
    if model_class is SpanModel:
        weights, bias = (v.numpy().astype(np.float64) for v in model.head.trainable_variables)
        expected = (x @ weights.T + bias)[..., 0]
        found = model.head(tf.cast(x, tf.bfloat16))[..., 0].numpy()
        kept = np.ones_like(found, bool)
    else:
        expected = x @ model.head.start_kernel.numpy().astype(np.float64)
        expected = expected[..., 0] + model.head.start_bias.numpy()
        found = model.head.starts(tf.cast(x, tf.bfloat16), batch["p_mask"]).numpy()
        kept = batch["p_mask"] == 0
    np.testing.assert_allclose(found[kept], expected[kept], atol=1e-6, rtol=0)


@pytest.mark.parametrize("model_class", MODELS)
def test_configuration_round_trip(model_class):
    options = {"start_n_top": 3, "end_n_top": 2, "dropout": 0.3}
    options = options if model_class is BeamSpanModel else {}
    model = model_class(tiny_model().encoder, **options)
    again = model_class.from_config(model.get_config())
    assert again.config == model.config
    if options:
        assert (again.start_n_top, again.end_n_top, again.head.dropout.rate) == (3, 2, 0.3)
        batch = asked_batch(2)
        del batch["start_positions"]
        assert again(batch)["end_top_index"].shape == (2, 6)
    with pytest.raises(ValueError, match="two names. Received: 'bert' twice"):
        model_class(tiny_model().encoder, name="bert")
