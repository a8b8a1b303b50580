"""Dropout: its rate, and masks that differ from step to step, layer to layer, part to part."""

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.dropout import dropout, random_bits
from bert_tf.training.replicas import all_reduce
from tests.support.crosses import slow
from tests.support.tiny_models import (
    ONE_LAYER,
    ProbedStep,
    computing_in,
    make_optimizer,
    make_step,
    random_batch,
    split_batch,
    step_of,
    tensors,
    tiny_model,
    two_devices,
    without_graphs,
)

RATE = 0.3


@pytest.mark.parametrize(
    "policy, xla, kind",
    (("mixed_bfloat16", False, "albert"), slow("float32", True, "bert")),
)
def test_share_of_dropped_units_is_the_rate(policy, xla, kind):
    with computing_in(policy):
        model = tiny_model(kind, dropout=RATE)
    step = step_of(model, make_optimizer("adamw", model), step_class=ProbedStep, seed=1, xla=xla)
    with without_graphs(not xla):
        steps = [step(tensors(random_batch(0, padding=False))) for _ in range(2)]
    # Embeddings, then attention probabilities, attention output, block output in each layer.
    assert step.count == 1 + 3 * 2
    first, second = (
        [result[f"dropped_{i}"].numpy() for i in range(step.count)] for result in steps
    )
    for mask in first + second:
        bound = 5 * np.sqrt(RATE * (1 - RATE) / mask.size)
        assert abs(mask.mean() - RATE) < bound < 0.1
    for a, b in zip(first, second, strict=True):
        assert not np.array_equal(a, b), "every step draws another mask"
    # The two layers' masks, which ALBERT's shared block draws in two calls.
    for a, b in zip(first[1:4], first[4:7], strict=True):
        assert not np.array_equal(a, b), "every layer draws another mask"


@pytest.mark.usefixtures("eagerly")
def test_replicas_drop_different_units():
    strategy = two_devices()
    with strategy.scope():
        model = tiny_model(dropout=RATE, **ONE_LAYER)
        optimizer = make_optimizer("adamw", model)

    class KeepReplicas(ProbedStep):
        def _distributed_step(self, batch, worker_metrics):
            return strategy.run(self._replica_step, args=(batch, worker_metrics, all_reduce))

        def _accumulate(self, *arguments, **others):
            sums, gradients = super()._accumulate(*arguments, **others)
            return {"mask": sums["dropped_0"], **sums}, gradients

    half = random_batch(0, size=4, padding=False)
    same_twice = {k: np.concatenate([v, v]) for k, v in half.items()}
    step = step_of(model, optimizer, strategy, step_class=KeepReplicas)
    # The masks are added up over the replicas: 1 where one of two dropped.
    masks = strategy.experimental_local_results(step(split_batch(same_twice, strategy))["mask"])[0]
    assert (masks.numpy() == 1).mean() == pytest.approx(2 * RATE * (1 - RATE), abs=0.1)


def test_parts_have_their_own_seeds():
    two = make_step(gradient_accumulation_steps=2, dropout=RATE)
    rows = two._seeds(0, 0).numpy().reshape(-1, 2)
    more = [two._seeds(*place).numpy().reshape(-1, 2) for place in ((1, 0), (0, 1), (1, 1))]
    every = {tuple(row) for row in np.concatenate([rows, *more])}
    assert len(every) == 4 * 2 * 7  # places, parts, dropout layers


# Words for a statistic: its standard deviations are a thousandth.
WORDS = 2**20
SIGMAS = 5


def bits(seed, shape=(WORDS,)):
    rows = np.arange(math.prod(shape[:-1]), dtype=np.int32).reshape(shape[:-1])
    return random_bits(rows, shape[-1], tf.constant(seed, tf.uint32)).numpy()


def assert_share(share, probability, count):
    """A share of independent trials is within five standard deviations of its probability."""
    bound = SIGMAS * np.sqrt(probability * (1 - probability) / count)
    assert np.all(np.abs(share - probability) < bound), (share, probability, bound)


SEEDS = ((0, 0), (1, 2), (123456789, 4000000001))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_bits_are_fair(seed):
    words = bits(seed)
    each = np.array([(words >> bit & 1).mean() for bit in range(32)])
    assert_share(each, 0.5, WORDS)
    for rate in (0.1, 0.3):
        assert_share((words < rate * 2**32).mean(), rate, WORDS)
    # Neighbours, above and beside each other.
    dropped = words < 0.1 * 2**32
    for distance in (1, 2, 3, 4, 64, 768, 1024):
        assert_share((dropped[distance:] & dropped[:-distance]).mean(), 0.01, WORDS)


@pytest.mark.parametrize("width", (64, 768, 1000))
def test_dropped_units_have_no_period(width):
    rows = WORDS // width
    dropped = bits((1, 2), (rows, width)) < 0.1 * 2**32
    assert_share(dropped.mean(0), 0.1, rows)
    assert_share(dropped.mean(1), 0.1, width)
    # As uneven as chance makes them, neither more nor less.
    for shares, count in ((dropped.mean(0), rows), (dropped.mean(1), width)):
        variance = shares.var() / (0.1 * 0.9 / count)
        assert abs(variance - 1) < SIGMAS * np.sqrt(2 / len(shares))


@pytest.mark.parametrize("seed", [SEEDS[0], *(slow(seed) for seed in SEEDS[1:])])
def test_masks_of_related_seeds_are_not_related(seed):
    """A shared block's calls have seeds (a, b), (a, b + 1), ...; a step's layers any."""
    related = [(seed[0], seed[1] + i) for i in range(1, 13)]  # the calls of one block
    related += [(seed[0] + i, seed[1]) for i in (1, 2, 4)]
    related += [(seed[0] ^ 2**31, seed[1]), (seed[0], seed[1] ^ 2**31), (seed[1] + 7, seed[0])]
    for rate in (0.1, 0.5):
        first = bits(seed) < rate * 2**32
        for other in related:
            both = first & (bits(other) < rate * 2**32)
            assert_share(both.mean(), rate**2, WORDS)


def test_counters_are_short():
    """Ranges are int32, which TensorFlow keeps in the host's memory and copies to a GPU."""
    shape = (4, 8, 16, 32)
    specs = tf.TensorSpec(shape), tf.TensorSpec([2], tf.uint32)
    draw = tf.function(lambda x, seed: dropout(x, RATE, seed)).get_concrete_function(*specs)
    made = [op.outputs[0] for op in draw.graph.get_operations() if op.type in ("Range", "Const")]
    sizes = [tensor.shape.num_elements() for tensor in made]
    assert None not in sizes and max(sizes) <= math.prod(shape[:-1])
