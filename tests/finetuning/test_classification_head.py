"""The classification head: the checkpoints of others, dropout, layers, Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import load_google_checkpoint
from bert_tf.checkpoint import save_google_checkpoint
from finetuning.classification.head import SequenceClassifier
from tests.support.refusals import refused
from tests.support.task_heads import labelled_batch
from tests.support.tiny_models import assert_close, tiny_model, weights_of


def classifier(classes=3):
    return SequenceClassifier(tiny_model().encoder, classes, 0.0)


def test_a_head_of_another_task_is_left_out_or_does_not_fit(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    trained, other = classifier(classes=3), classifier(classes=2)
    save_google_checkpoint(trained, prefix)
    load_google_checkpoint(other.encoder, prefix)
    assert_close(weights_of(other.encoder), weights_of(trained.encoder), 0, 0)
    with refused("output_bias: the model has [2], the file [3]"):
        load_google_checkpoint(other, prefix)


def test_dropout_is_of_a_tenth():
    keras.utils.set_random_seed(0)
    model = SequenceClassifier(tiny_model().encoder, 3)  # of an encoder without dropout
    dropped = model.head.dropout(tf.ones([100, 100]), training=True).numpy()
    assert (dropped == 0).mean() == pytest.approx(0.1, abs=0.01)
    assert dropped.max() == pytest.approx(1 / 0.9)


def test_rows_without_a_mask_are_all_tokens_for_layers_too():
    """As for the encoder, and for the pooled head."""
    encoder, ids = tiny_model().encoder, labelled_batch(2)["input_ids"]
    for layers in ((), (0, -1)):
        model = SequenceClassifier(encoder, 2, feature_layers=layers)
        found, masked = (
            model({"input_ids": ids, **mask})["logits"]
            for mask in ({}, {"input_mask": np.ones_like(ids)})
        )
        np.testing.assert_array_equal(found, masked)


@pytest.mark.parametrize("layer", [3, -4])
def test_a_layer_that_the_encoder_lacks(layer):
    with refused("feature_layers must be from -3 to 2", f"Received: 0, {layer}"):
        SequenceClassifier(tiny_model().encoder, 2, feature_layers=(0, layer))


def test_keras_fits_it_itself():
    """No name here takes the place of what Keras asks a model for."""
    model, batch = classifier(), labelled_batch(3)
    model.compile("sgd", {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)})
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    before = model.head.output_bias.numpy()
    model.fit(inputs, {"logits": batch["label_ids"]}, verbose=0)
    assert (model.head.output_bias.numpy() != before).any()
