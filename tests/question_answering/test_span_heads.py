"""The head that finds answers with beams: the beams, precision."""

import keras
import numpy as np
import tensorflow as tf

from finetuning.question_answering.beam_head import BeamSpanModel
from tests.support.task_heads import asked_batch
from tests.support.tiny_models import computing_in, tiny_model


def beam_model():
    return BeamSpanModel(tiny_model().encoder, dropout=0.0)


def test_beams_are_the_best_of_all_pairs():
    """Every start with every end, one by one, by the head that is given the start."""
    model, batch = beam_model(), asked_batch(4)
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


def test_starts_are_exact_in_a_model_that_computes_in_bfloat16():
    keras.utils.set_random_seed(0)
    with computing_in("mixed_bfloat16"):
        model = beam_model()
    batch = asked_batch()
    hidden = model.encoder(batch)["sequence_output"]
    assert hidden.dtype == tf.bfloat16
    assert {value.dtype for value in model(batch).values()} == {tf.float32}
    kernel = model.head.start_kernel.numpy().astype(np.float64)
    expected = tf.cast(hidden, tf.float64).numpy() @ kernel + model.head.start_bias.numpy()
    found = model.head.starts(hidden, batch["p_mask"]).numpy()
    kept = batch["p_mask"] == 0
    np.testing.assert_allclose(found[kept], expected[..., 0][kept], atol=1e-6, rtol=0)
