"""Every objective trains the same in every way to compute: devices, parts, XLA, recomputation."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import OPTIMIZERS
from bert_tf.training.step import TrainingStep
from tests.finetuning.test_similarity_losses import make_model as ranking_model
from tests.finetuning.test_similarity_losses import random_texts
from tests.support.crosses import slow
from tests.support.tiny_models import (
    assert_close,
    first_state,
    make_optimizer,
    random_batch,
    split_batch,
    step_of,
    strategy_of,
    tiny_model,
    trained_variables,
    without_graphs,
)
from tests.support.training_checks import unequal_copies
from tests.training.test_distillation import make_teacher, step_with
from tests.training.test_replaced_tokens import tiny as both_networks
from tests.training.test_token_dropping import dropping_step


class SameSeeds(TrainingStep):
    """Every replica and every microbatch has the seeds of the first."""

    def _seeds(self, step, replica):
        seeds = super()._seeds(step, tf.zeros_like(replica))
        return tf.tile(seeds[:1], [seeds.shape[0], 1, 1])


def replaced_tokens(strategy, dropout, **options):
    """Rows draw the same on every device."""
    with strategy.scope():
        model = both_networks(dropout)
        optimizer = make_optimizer("adamw", model)
    return step_of(model, optimizer, strategy, step_class=SameSeeds, **options)


def token_dropping(kind, strategy, dropout, **options):
    return dropping_step(kind=kind, strategy=strategy, dropout=dropout, **options)


def distillation(kind, strategy, dropout, **options):
    with strategy.scope():
        student = tiny_model(dropout=dropout)
        teacher = make_teacher(kind, student)
    return step_with(student, teacher, strategy, **options)


def ranking(strategy, dropout, **options):
    """Each text is compared with those of all devices and parts."""
    with strategy.scope():
        model = ranking_model(dropout=dropout)
        optimizer = OPTIMIZERS["adamw"](1e-2)
        optimizer.build(model.trainable_variables)
    return step_of(model, optimizer, strategy, **options)


# name -> (a function of a strategy, a rate of dropout and options that makes a step, its batches)
OBJECTIVES = {
    "replaced tokens": (replaced_tokens, random_batch),
    "token dropping": (functools.partial(token_dropping, "bert"), random_batch),
    "token dropping of ALBERT": (functools.partial(token_dropping, "albert"), random_batch),
    "logits": (functools.partial(distillation, "logits"), random_batch),
    "minilm": (functools.partial(distillation, "minilm"), random_batch),
    "ranking": (ranking, random_texts),
}


def run(name, devices=1, dropout=0.0, **options):
    """Three updates: what each returned, weights and moments, averages of token dropping."""
    make, batch = OBJECTIVES[name]
    strategy = strategy_of(devices)
    keras.utils.set_random_seed(3)
    step = make(strategy, dropout, **options)
    metrics = [step(split_batch(batch(i), strategy)) for i in range(3)]
    assert unequal_copies(strategy, trained_variables(step).values()) == []
    averages = []
    if step.token_dropping is not None:
        copies = strategy.experimental_local_results(step.token_dropping.losses)
        averages = [copy.numpy() for copy in copies]
    numbers = [{key: float(value) for key, value in each.items()} for each in metrics]
    return numbers, first_state(step), averages


def assert_same(found, expected):
    """Equal in float64 up to rounding; the averages are float32 everywhere."""
    for one, other in zip(found[0], expected[0], strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
    assert_close(found[1], expected[1], 1e-9, floor=1e-4)
    for average in found[2]:
        np.testing.assert_allclose(average, expected[2][0], rtol=1e-6)
        assert len(np.unique(average)) > 30 and average.max() <= 10


EVERY = pytest.mark.parametrize("name", OBJECTIVES)

# Devices, parts of their batches, whether XLA compiles.
SPLITS = ((2, 2, False), slow(2, 1, False), slow(1, 4, True))


@pytest.mark.parametrize("devices, parts, xla", SPLITS)
@EVERY
def test_devices_and_parts_of_a_batch(float64, name, devices, parts, xla):
    with without_graphs():
        expected = run(name)
    with without_graphs(not xla):
        found = run(name, devices, gradient_accumulation_steps=parts, xla=xla)
    assert_same(found, expected)
    for numbers in expected[0]:
        assert 0 < numbers.get("discriminator_replaced_weight", 1) < 32
        assert numbers.get("ranking_weight", 7) == 7  # the last row has no weight


@pytest.mark.slow
@EVERY
def test_xla_and_recomputation_change_nothing(float64, name):
    with without_graphs():
        plain = run(name, dropout=0.1)
    for options in ({"xla": True}, {"recompute": "block"}):
        assert_same(run(name, dropout=0.1, **options), plain)
