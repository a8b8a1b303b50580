"""The training step: every split of a batch trains the same, loops, skipped steps, dropout."""

import functools
import itertools
import math
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from paths import PYTHONPATH
from tiny import (
    ONE_LAYER,
    ProbedStep,
    assert_close,
    computing_in,
    gradients_of,
    make_optimizer,
    make_step,
    random_batch,
    set_training_state,
    split_batch,
    strategy_of,
    tensors,
    tiny_model,
    training_state,
    two_devices,
)
from workers import start_workers, wait_for

from bert_tf.checkpoint import google_variables
from bert_tf.dropout import random_bits
from bert_tf.pretraining import loss_sums
from bert_tf.training.evaluation import EvaluationStep
from bert_tf.training.step import TrainingStep

RATE = 0.3


# What the quick run has of all of them.
QUICK = (("float32", True, "albert"), ("mixed_bfloat16", False, "bert"))


@pytest.mark.parametrize(
    "policy, xla, kind",
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
        for case in itertools.product(
            ("float32", "mixed_bfloat16"), (True, False), ("bert", "albert")
        )
    ],
)
def test_share_of_dropped_units_is_the_rate(policy, xla, kind):
    with computing_in(policy):
        model = tiny_model(kind, dropout=RATE)
    step = ProbedStep(
        model,
        make_optimizer("adamw", model),
        tf.distribute.get_strategy(),
        seed=1,
        xla=xla,
        xla_update=False,
    )
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


def test_replicas_drop_different_units():
    strategy = two_devices()
    with strategy.scope():
        model = tiny_model(dropout=RATE, **ONE_LAYER)
        optimizer = make_optimizer("adamw", model)

    class KeepReplicas(ProbedStep):
        def _distributed_step(self, batch, worker_metrics):
            return strategy.run(self._replica_step, args=(batch, worker_metrics))

        def _accumulate(self, *arguments):
            sums, gradients = super()._accumulate(*arguments)
            return {"mask": sums["dropped_0"], **sums}, gradients

    half = random_batch(0, size=4, padding=False)
    same_twice = {k: np.concatenate([v, v]) for k, v in half.items()}
    step = KeepReplicas(model, optimizer, strategy, xla=False, xla_update=False)
    # The masks are added up over the replicas: 1 where one of two dropped.
    masks = strategy.experimental_local_results(step(split_batch(same_twice, strategy))["mask"])[0]
    assert (masks.numpy() == 1).mean() == pytest.approx(2 * RATE * (1 - RATE), abs=0.1)


STEPS = 20
CLOSE = 1e-9
LAYERS = {"bert": 1, "albert": 2}  # one is traced sooner; that of ALBERT is called twice
CASES = (("bert", "adamw"), ("albert", "lamb"))


def run_steps(kind, optimizer_name, **options):
    """Losses and gradient norms of every step, then moments and weights by Google's name."""
    sizes = {"num_hidden_layers": LAYERS[kind]}
    step = make_step(kind, optimizer_name, sizes=sizes, **options)
    numbers = []
    for i in range(STEPS):
        metrics = step(split_batch(random_batch(i, size=16), step.strategy))
        # The norm too: clipping hides how long a gradient was.
        numbers.append([float(metrics["loss"]), float(metrics["gradient_norm"])])
    return np.array(numbers), {name: values[0] for name, values in training_state(step).items()}


@functools.cache
def one_device(kind, optimizer_name):
    """What all others are compared with: one device, the batch whole; in float64."""
    assert keras.config.floatx() == "float64"
    return run_steps(kind, optimizer_name)


def assert_same_training(found, expected):
    """Losses, norms, weights, moments: equal in float64 up to rounding."""
    np.testing.assert_allclose(found[0], expected[0], atol=CLOSE, rtol=0)
    assert_close(found[1], expected[1], CLOSE, floor=1e-4)


# Ways to compute 16 examples; every part has other numbers of masked words.
SPLITS = {
    "XLA": {"xla": True, "xla_update": True},
    "two devices": {"strategy": two_devices},
    "two parts": {"accumulation_steps": 2, "xla": True},
    "two parts on two devices": {"strategy": two_devices, "accumulation_steps": 2},
}


@pytest.mark.parametrize(
    "split, kind, optimizer_name",
    [
        # In the quick run each split with one model.
        pytest.param(split, *case, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, split in enumerate(SPLITS)
        for j, case in enumerate(CASES)
    ],
)
def test_every_split_trains_the_same(float64, split, kind, optimizer_name):
    options = dict(SPLITS[split])
    if "strategy" in options:
        options["strategy"] = options["strategy"]()
    found = run_steps(kind, optimizer_name, **options)
    assert found[0].shape == (STEPS, 2)
    assert_same_training(found, one_device(kind, optimizer_name))


def test_parts_have_different_weights():
    """Else a mean of means would pass for the mean."""
    masked = random_batch(0, size=16)["masked_lm_weights"].reshape(4, -1).sum(1)
    assert len({*masked, *masked.reshape(2, 2).sum(1)}) > 4


@pytest.mark.parametrize("kind", (pytest.param("bert", marks=pytest.mark.slow), "albert"))
def test_gradients_in_float32(kind):
    whole, parts = (
        gradients_of(make_step(kind, accumulation_steps=n), random_batch(0, size=16))
        for n in (1, 2)
    )
    assert parts[0] == pytest.approx(whole[0], rel=1e-5)
    assert_close(parts[1], whole[1], 1e-5, floor=1e-2)


def test_parts_draw_their_own_masks():
    halves = [random_batch(0), random_batch(0)]
    twice = tensors({k: np.concatenate([half[k] for half in halves]) for k in halves[0]})
    two = make_step(accumulation_steps=2, dropout=RATE)
    seeds = two._seeds(0, 0)
    rows = seeds.numpy().reshape(-1, 2)
    more = [two._seeds(*place).numpy().reshape(-1, 2) for place in ((1, 0), (0, 1), (1, 1))]
    every = {tuple(row) for row in np.concatenate([rows, *more])}
    assert len(every) == 4 * 2 * 7  # places, parts, dropout layers

    def loss(step, batch):
        weights = [v.value for v in step.weights]
        objective = step.model.objective
        divisors = objective.denominators(objective.weight_sums(twice))
        place = tf.constant(0, tf.int64), tf.constant(0)
        sums, _ = step.forward_backward(weights, *place, batch, divisors, tf.constant(1.0))
        return float(sums["masked_lm_loss"])

    losses = []
    for i, half in enumerate(halves):
        one = make_step(dropout=RATE)
        one._seeds = lambda step, replica, i=i: seeds[i : i + 1]
        losses.append(loss(one, tensors(half)))
    assert losses[0] != pytest.approx(losses[1], rel=1e-4)
    assert loss(two, twice) == pytest.approx(sum(losses), rel=1e-6)


WORKER = """
import sys
import keras
import numpy as np
from bert_tf.training.distribution import barrier, make_strategy, worker_index
keras.config.set_floatx("float64")
keras.config.set_dtype_policy("float64")
strategy = make_strategy("multi_worker")
from test_step import run_steps
from tiny import optimize_graphs
optimize_graphs(False)  # as in conftest.py: what it changes grows from step to step
folder, kind, optimizer_name, xla = sys.argv[1:]
numbers, state = run_steps(kind, optimizer_name, strategy=strategy, xla=xla == "True")
np.savez(f"{folder}/{worker_index(strategy)}.npz", numbers=numbers, **state)
barrier(strategy)
"""


@pytest.mark.parametrize(
    "kind, optimizer_name, xla",
    (pytest.param(*CASES[0], True, marks=pytest.mark.slow), (*CASES[1], False)),
)
def test_two_workers_train_as_one_device(float64, tmp_path, kind, optimizer_name, xla):
    program = tmp_path / "program.py"
    program.write_text(WORKER, encoding="utf-8")
    paths = {"PYTHONPATH": PYTHONPATH}
    command = [program, tmp_path, kind, optimizer_name, xla]
    with start_workers(command, tmp_path, environments=[paths] * 2) as workers:
        wait_for(workers, deadline=600)
    first, second = (dict(np.load(tmp_path / f"{i}.npz")) for i in range(2))
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
    assert_same_training((first.pop("numbers"), first), one_device(kind, optimizer_name))


class DoubledGradient(TrainingStep):
    """A wrong step: the gradient is twice what it should be."""

    def _accumulate(self, *arguments):
        sums, gradients = super()._accumulate(*arguments)
        return sums, [2 * g for g in gradients]


class ReducedTwice(TrainingStep):
    """A wrong step: the optimizer adds the reduced gradients up once more."""

    def _update(self, *arguments, gradients, **values):
        twice = [gradient * self.strategy.num_replicas_in_sync for gradient in gradients]
        return super()._update(*arguments, gradients=twice, **values)


@pytest.mark.parametrize(
    "kind, optimizer_name, wrong",
    (
        (*CASES[0], DoubledGradient),
        (*CASES[1], ReducedTwice),
        pytest.param(*CASES[0], ReducedTwice, marks=pytest.mark.slow),
        pytest.param(*CASES[1], DoubledGradient, marks=pytest.mark.slow),
    ),
)
def test_the_comparison_notices_a_wrong_step(float64, kind, optimizer_name, wrong):
    strategy = two_devices() if wrong is ReducedTwice else None
    two = run_steps(kind, optimizer_name, strategy=strategy, step_class=wrong)
    with pytest.raises(AssertionError):
        assert_same_training(two, one_device(kind, optimizer_name))


@pytest.mark.parametrize(
    "kind, xla", (pytest.param("bert", True, marks=pytest.mark.slow), ("albert", False))
)
def test_weights_without_a_gradient_stay(kind, xla):
    """Without sentence labels the pooler and its head are neither updated nor decayed."""
    step = make_step(kind, xla=xla, xla_update=xla)
    before = {name: v.numpy() for name, v in google_variables(step.model).items()}
    for i in range(5):
        batch = random_batch(i)
        del batch["next_sentence_labels"], batch["next_sentence_weights"]
        metrics = step(tensors(batch))
    assert not any(name.startswith("next_sentence") for name in metrics)
    for name, variable in google_variables(step.model).items():
        untouched = name.startswith(("bert/pooler", "cls/seq_relationship"))
        assert np.array_equal(before[name], variable.numpy()) == untouched, name


def test_evaluation_does_not_depend_on_the_split():
    strategy = two_devices()
    with strategy.scope():
        model = tiny_model(dropout=RATE)
    batch = random_batch(0)
    two = EvaluationStep(model, strategy)(split_batch(batch, strategy))
    plain = loss_sums(model(batch, training=False), batch)
    for name, value in plain.items():
        assert float(two[name]) == pytest.approx(float(value), rel=1e-5)


DEVICES = pytest.mark.parametrize(
    "devices, xla", (pytest.param(1, True, marks=pytest.mark.slow), (2, False))
)


@DEVICES
def test_loop_equals_calls_bit_for_bit(devices, xla):
    strategy = strategy_of(devices)
    batches = [random_batch(i) for i in range(5)]
    examples = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    size = 8 // devices  # of a replica's part, in turn

    def dataset(context):
        return tf.data.Dataset.from_tensor_slices(examples).batch(size, drop_remainder=True)

    step = make_step("albert", strategy=strategy, dropout=RATE, xla=xla, sizes=ONE_LAYER)
    start = training_state(step)
    rows = [step(split_batch(batch, strategy)) for batch in batches]
    called = training_state(step)
    set_training_state(step, start, 0)
    iterator = iter(strategy.distribute_datasets_from_function(dataset))
    calls = ((3, False, 0.0), (2, True, 1.5))
    tables = [step.loop(iterator, steps, stop, seconds) for steps, stop, seconds in calls]
    for name in rows[0]:
        if name not in ("stop", "step_seconds"):
            table = np.concatenate([table[name].numpy() for table in tables])
            np.testing.assert_array_equal(table, [float(row[name]) for row in rows], err_msg=name)
    assert [table["stop"].numpy().tolist() for table in tables] == [[0] * 3, [1] * 2]
    assert [table["step_seconds"].numpy().tolist() for table in tables] == [[0] * 3, [1.5] * 2]
    assert set(tables[0]) - set(rows[0]) == {"input_seconds"}
    for table, steps in zip(tables, (3, 2), strict=True):
        waited = table["input_seconds"].numpy()
        assert waited.shape == (steps,) and (waited >= 0).all()
    assert_bits_equal(training_state(step), called)
    assert step.optimizer.iterations.numpy() == 5


def test_loop_measures_how_long_it_waits():
    fields = tensors(random_batch(0))
    slow = tf.data.Dataset.range(3).map(lambda i: tf.py_function(wait, [i], tf.int64))
    batches = slow.map(lambda i: {**fields, "number": i})
    step = make_step(sizes=ONE_LAYER)
    waited = step.loop(iter(batches), 3)["input_seconds"].numpy()
    assert (waited > WAIT / 2).all()


WAIT = 0.2


def wait(i):
    time.sleep(WAIT)
    return i


def assert_bits_equal(found, expected):
    for name, values in expected.items():
        for one, other in zip(found[name], values, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


@DEVICES
def test_a_step_that_is_not_finite_changes_nothing(devices, xla):
    strategy = strategy_of(devices)
    step = make_step("albert", "lamb", strategy=strategy, xla=xla, sizes=ONE_LAYER)
    start = training_state(step)
    broken = random_batch(1)
    broken["masked_lm_weights"][-1, 0] = np.nan  # in the last replica's part
    assert float(step(split_batch(random_batch(0), strategy))["skipped"]) == 0
    before = training_state(step)
    metrics = step(split_batch(broken, strategy))
    assert float(metrics["skipped"]) == 1 and np.isnan(float(metrics["loss"]))
    assert step.optimizer.iterations.numpy() == 2
    assert_bits_equal(training_state(step), before)

    good = step(split_batch(random_batch(2), strategy))
    assert float(good["skipped"]) == 0 and np.isfinite(float(good["loss"]))
    after = training_state(step)
    for name, values in after.items():
        assert all(np.isfinite(value).all() for value in values), name
        assert not np.array_equal(values[0], before[name][0]), name
        assert all(np.array_equal(value, values[0]) for value in values), name
    # As if the batch had never been, but for the learning rate, which moves on with the count.
    set_training_state(step, start, 0)
    step(split_batch(random_batch(0), strategy))
    step.optimizer.iterations.assign(2)
    step(split_batch(random_batch(2), strategy))
    assert_bits_equal(training_state(step), after)


def test_gradient_of_one_replica_that_is_not_finite():
    """The loss is finite and so is the other replica's gradient: all the same none updates."""

    class Overflowing(TrainingStep):
        def _accumulate(self, weights, step, replica, batch, *rest):
            sums, gradients = super()._accumulate(weights, step, replica, batch, *rest)
            own = tf.reduce_any(batch["input_ids"][:, 0] == 59)
            return sums, [tf.where(own, np.inf, 1.0) * gradients[0], *gradients[1:]]

    strategy = two_devices()
    step = make_step(strategy=strategy, step_class=Overflowing, sizes=ONE_LAYER)
    batch = random_batch(0)
    batch["input_ids"][:, 0] = 5
    marked = {**batch, "input_ids": batch["input_ids"].copy()}
    marked["input_ids"][-1, 0] = 59
    before = training_state(step)
    metrics = step(split_batch(marked, strategy))
    assert np.isfinite(float(metrics["loss"]))
    assert not np.isfinite(float(metrics["gradient_norm"]))
    assert float(metrics["skipped"]) == 1
    assert_bits_equal(training_state(step), before)
    assert float(step(split_batch(batch, strategy))["skipped"]) == 0


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


@pytest.mark.parametrize("seed", SEEDS)
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


@pytest.mark.parametrize("kind", (pytest.param("bert", marks=pytest.mark.slow), "albert"))
def test_masks_of_layers_and_steps_agree_by_chance(kind):
    sizes = {"num_hidden_layers": 5}
    step = make_step(kind, step_class=ProbedStep, sizes=sizes, dropout=RATE)
    batch = tensors(random_batch(0, size=64, padding=False))
    results = [step(batch) for _ in range(2)]
    # The attention's output and the block's, of each layer but the last: masks of one shape.
    numbers = [i for layer in range(4) for i in (2 + 3 * layer, 3 + 3 * layer)]
    masks = [result[f"dropped_{i}"].numpy() == 1 for result in results for i in numbers]
    assert len({mask.size for mask in masks}) == 1
    for one, other in itertools.combinations(masks, 2):
        assert_share((one & other).mean(), RATE**2, one.size)
