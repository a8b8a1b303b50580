"""Prediction: an example's outputs do not depend on the batch that it is in."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from finetuning.classification.head import SequenceClassifier
from finetuning.prediction import Predictor
from tests.support.crosses import slow
from tests.support.refusals import refused
from tests.support.tiny_models import ONE_LAYER, make_examples, strategy_of, tiny_model

BOUNDARIES = (8, 16, 32)


def make_model():
    """A classifier of three classes, with weights large enough for examples to differ."""
    keras.utils.set_random_seed(2)
    model = SequenceClassifier(tiny_model(**ONE_LAYER).encoder, classes=3)
    for variable in model.trainable_variables:
        if variable.ndim == 2:
            variable.assign(5 * variable)
    return model


def logits(examples, devices, size, boundaries=BOUNDARIES):
    strategy = strategy_of(devices)
    with strategy.scope():
        model = make_model()
    outputs = Predictor(model, strategy, xla="off")(examples, size, boundaries)
    assert set(outputs) == {"logits"} and len(outputs["logits"]) == len(examples.lengths)
    return np.stack(outputs["logits"])


@pytest.fixture(scope="module")
def plain():
    """The model alone on one example after another, nothing padded."""
    examples, model = make_examples(13), make_model()
    rows = [examples.make_batch(np.array([i]), examples.lengths[i]) for i in range(13)]
    found = np.concatenate([model(row)["logits"] for row in rows])
    assert np.abs(np.diff(found, axis=0)).max(axis=1).min() > 1e-3  # an order can be seen
    return found


@pytest.mark.parametrize(
    "devices, size, boundaries",
    (
        (1, 4, BOUNDARIES),  # the last batch has one
        slow(1, 100, (32,)),
        slow(2, 4, BOUNDARIES),
        (2, 5, BOUNDARIES),  # three for a device
    ),
)
def test_rows_in_their_order(plain, devices, size, boundaries):
    found = logits(make_examples(13), devices, size, boundaries)
    np.testing.assert_allclose(found, plain, atol=1e-5, rtol=0)


def test_batches_are_as_long_as_their_longest_needs():
    """The longest first, of one shape each; all of them are compiled once."""
    examples, shapes = make_examples(13), []
    make_batch = examples.make_batch

    def recording(numbers, length):
        shapes.append((len(numbers), length, examples.lengths[numbers].max()))
        return make_batch(numbers, length)

    object.__setattr__(examples, "make_batch", recording)
    predictor = Predictor(make_model(), strategy_of(1), xla="off")
    first = predictor(examples, 4, BOUNDARIES)
    sizes, lengths, longest = zip(*shapes, strict=True)
    assert sizes == (4,) * 4 and longest[0] == examples.lengths.max()
    assert [*longest] == sorted(longest, reverse=True)
    assert [*lengths] == [min(b for b in BOUNDARIES if b >= each) for each in longest]
    again = predictor(examples, 4, BOUNDARIES)
    np.testing.assert_array_equal(first["logits"], again["logits"])


def test_weights_that_have_changed_are_seen():
    examples, model = make_examples(3), make_model()
    predictor = Predictor(model, strategy_of(1), xla="off")
    before = np.stack(predictor(examples, 3, (32,))["logits"])
    model.head.output_bias.assign([1.0, 2.0, 3.0])
    after = np.stack(predictor(examples, 3, (32,))["logits"])
    np.testing.assert_allclose(after - before, [[1.0, 2.0, 3.0]] * 3, atol=1e-5)


def test_memory_that_runs_out(monkeypatch):
    predictor = Predictor(make_model(), strategy_of(1), xla="off")

    def run(batch):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM")

    monkeypatch.setattr(predictor, "run", run)
    with refused("lower --eval_batch_size or --predict_batch_size", "batch_size=4, OOM"):
        predictor(make_examples(5), 4, BOUNDARIES)


def test_a_model_that_xla_cannot_compile(monkeypatch):
    model, examples = make_model(), make_examples(3)
    expected = Predictor(model, strategy_of(1), xla="off")(examples, 2, BOUNDARIES)["logits"]
    call = SequenceClassifier.call

    def with_text(self, inputs, **options):
        """The same logits by way of text, which XLA does not know."""
        logits = call(self, inputs, **options)["logits"]
        return {"logits": tf.strings.to_number(tf.strings.as_string(logits, precision=9))}

    monkeypatch.setattr(SequenceClassifier, "call", with_text)
    with pytest.warns(match="XLA cannot compile the prediction here, so it runs without"):
        found = Predictor(model, strategy_of(1))(examples, 2, BOUNDARIES)["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-6)
