"""Heads that find answers: how they start, beams, precision."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from finetuning.question_answering.beam_head import BeamSpanModel, masked
from finetuning.question_answering.span_head import SpanModel
from tests.support.task_heads import asked_batch
from tests.support.tiny_models import computing_in, tiny_model

MODELS = (SpanModel, BeamSpanModel)


def span_model(model_class=SpanModel, kind="bert", **changes):
    options = {"dropout": 0.0} if model_class is BeamSpanModel else {}
    return model_class(tiny_model(kind, **changes).encoder, **options)


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
