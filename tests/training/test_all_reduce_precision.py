"""Gradients that are added up over the devices in bfloat16."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.training import step as step_module
from tests.support.tiny_models import (
    ONE_LAYER,
    make_step,
    random_batch,
    split_batch,
    trained_variables,
    two_devices,
)
from tests.support.training_checks import unequal_copies


def train(dtype, monkeypatch, strategy=None, steps=8, **options):
    """Losses, and the types of the gradients that were added up."""
    sent = set()
    all_reduce = step_module.all_reduce

    def recording(context, values):
        if isinstance(values, tuple):  # sums and gradients
            sums, gradients = values
            assert {value.dtype for value in sums.values()} == {tf.float32}
            sent.update(gradient.dtype.name for gradient in gradients)
        return all_reduce(context, values)

    monkeypatch.setattr(step_module, "all_reduce", recording)
    step = make_step(strategy=strategy, all_reduce_precision=dtype, **options)
    batches = [split_batch(random_batch(i % 4), step.strategy) for i in range(steps)]
    losses = [float(step(batch)["loss"]) for batch in batches]
    assert unequal_copies(step.strategy, trained_variables(step).values()) == []
    return np.array(losses), sent


@pytest.mark.slow
@pytest.mark.parametrize("parts, xla", ((1, False), (2, True)))
def test_bfloat16_sums(monkeypatch, parts, xla):
    options = {"strategy": two_devices(), "xla": xla, "xla_update": xla}
    options["gradient_accumulation_steps"] = parts
    expected, sent = train("float32", monkeypatch, **options)
    assert sent == {"float32"}
    losses, sent = train("bfloat16", monkeypatch, **options)
    assert sent == {"bfloat16"}
    # 8 bits of every gradient are sent: the losses differ, but little.
    assert 0 < np.abs(losses - expected).max() < 0.02 * expected[0]


@pytest.mark.usefixtures("eagerly")
def test_one_device_sends_nothing(monkeypatch):
    expected, _ = train("float32", monkeypatch, steps=2, sizes=ONE_LAYER)
    losses, sent = train("bfloat16", monkeypatch, steps=2, sizes=ONE_LAYER)
    assert sent == {"float32"}
    np.testing.assert_array_equal(losses, expected)
