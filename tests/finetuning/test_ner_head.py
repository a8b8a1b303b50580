"""The head for every token: against an oracle, its layers."""

import keras
import numpy as np
import pytest

from bert_tf.encoder import run_inside
from bert_tf.layers import call_block
from finetuning.ner.head import TokenClassifier
from tests.support import oracle
from tests.support.task_heads import TAGS, tagged_batch
from tests.support.tiny_models import SIZES, tiny_model, weights_of


def classifier(kind="bert"):
    return TokenClassifier(tiny_model(kind).encoder, TAGS, dropout=0.0)


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_layers_are_counted_from_the_embedding_output(kind):
    keras.utils.set_random_seed(0)
    encoder, batch = tiny_model(kind).encoder, tagged_batch()
    states = run_inside(encoder, batch).hidden_states
    for indices in ((0,), (1, 2), (-1, -3)):
        expected = np.concatenate([states[i] for i in indices], axis=-1)
        model = TokenClassifier(encoder, TAGS, feature_layers=indices)
        np.testing.assert_array_equal(model.encode(batch, False), expected)


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_logits_and_sums_against_the_oracle(kind, float64):
    keras.utils.set_random_seed(0)
    model, batch = classifier(kind), tagged_batch()
    rng = np.random.default_rng(2)
    model.head.output_weights.assign(rng.normal(size=(TAGS, SIZES["hidden_size"])))
    model.head.output_bias.assign(rng.normal(size=TAGS))
    weights = weights_of(model)
    hidden = oracle.encode(weights, model.config, batch)["sequence_output"]
    logits = hidden @ weights["output_weights"].T + weights["output_bias"]  # [B, T, C]
    found = model(batch)
    np.testing.assert_allclose(found["logits"], logits, atol=1e-9, rtol=0)

    label_weights = batch["token_label_weights"].astype(np.float64)
    chosen = np.take_along_axis(
        oracle.log_softmax(logits), batch["token_label_ids"][..., None], axis=-1
    )  # [B, T, 1]
    expected = {
        "label_loss": -(chosen[..., 0] * label_weights).sum(),
        "label_correct": ((logits.argmax(-1) == batch["token_label_ids"]) * label_weights).sum(),
        "label_weight": label_weights.sum(),
    }
    sums = model.objective.loss_sums(found, batch)
    assert {name: float(value) for name, value in sums.items()} == pytest.approx(expected, rel=1e-9)
    assert 0 < expected["label_correct"] < expected["label_weight"]
    assert model.objective.denominators({"label": 7.0}) == {"label": 7.0}


def test_blocks_run_as_asked():
    called = []

    def recording(block, *arguments, **options):
        called.append(block.name)
        return call_block(block, *arguments, **options)

    classifier()(tagged_batch(), run_block=recording)
    assert called == ["layer_0", "layer_1"]
