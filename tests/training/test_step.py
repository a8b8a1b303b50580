"""The training step: every split of a batch trains the same, loops, skipped steps, dropout."""

import functools
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import OPTIMIZERS
from bert_tf.training.step import TrainingStep
from tests.support.crosses import but_slow, slow
from tests.support.tiny_models import (
    ONE_LAYER,
    make_step,
    random_batch,
    split_batch,
    step_of,
    strategy_of,
    tensors,
    tiny_model,
    trained_variables,
    training_state,
    two_devices,
    weights_of,
)
from tests.support.training_checks import (
    CASES,
    STEPS,
    assert_same_training,
    run_steps,
    train_on_two_workers,
)

RATE = 0.3


@functools.cache
def one_device(kind, optimizer_name):
    """What all others are compared with: one device, the batch whole; in float64."""
    assert keras.config.floatx() == "float64"
    return run_steps(kind, optimizer_name)


# Ways to compute 16 examples; every part has other numbers of masked words.
SPLITS = {
    "XLA": {"xla": True, "xla_update": True},
    "two devices": {"strategy": two_devices},
    "two parts": {"gradient_accumulation_steps": 2, "xla": True},
    "two parts on two devices": {"strategy": two_devices, "gradient_accumulation_steps": 2},
}
QUICK = (("two parts", *CASES[0]), ("two parts on two devices", *CASES[1]))


@pytest.mark.parametrize(
    "split, kind, optimizer_name",
    # In the quick run both kinds of parts, one with each model.
    but_slow([(split, *case) for split in SPLITS for case in CASES], QUICK),
)
def test_every_split_trains_the_same(float64, split, kind, optimizer_name):
    options = dict(SPLITS[split])
    if "strategy" in options:
        options["strategy"] = options["strategy"]()
    found = run_steps(kind, optimizer_name, **options)
    assert found[0].shape == (STEPS, 2)
    assert_same_training(found, one_device(kind, optimizer_name))


@pytest.mark.parametrize(
    "kind, optimizer_name, xla",
    ((*CASES[0], False), slow(*CASES[0], True), slow(*CASES[1], False)),
)
def test_two_workers_train_as_one_device(float64, tmp_path, kind, optimizer_name, xla):
    options = {"kind": kind, "optimizer_name": optimizer_name, "xla": xla}
    found = train_on_two_workers(tmp_path, "tests.support.training_checks", "run_steps", **options)
    assert_same_training(found, one_device(kind, optimizer_name))


@pytest.mark.parametrize("kind, xla", (slow("bert", True), ("albert", False)))
def test_weights_without_a_gradient_stay(kind, xla):
    """Without sentence labels the pooler and its head are neither updated nor decayed."""
    step = make_step(kind, xla=xla, xla_update=xla)
    before = weights_of(step.model)
    for i in range(2):
        batch = random_batch(i)
        del batch["next_sentence_labels"], batch["next_sentence_weights"]
        metrics = step(tensors(batch))
    assert not any(name.startswith("next_sentence") for name in metrics)
    for name, value in weights_of(step.model).items():
        untouched = name.startswith(("bert/pooler", "cls/seq_relationship"))
        assert np.array_equal(before[name], value) == untouched, name


DEVICES = pytest.mark.parametrize("devices, xla", (slow(1, True), (2, False)))


def set_state(step, state, count):
    """Gives weights and moments back the values of a `training_state`."""
    for name, variable in trained_variables(step).items():
        variable.assign(state[name][0])
    step.optimizer.iterations.assign(count)


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
    set_state(step, start, 0)
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
    assert all((table["input_seconds"].numpy() >= 0).all() for table in tables)
    assert_bits_equal(training_state(step), called)
    assert step.optimizer.iterations.numpy() == 5


@pytest.mark.slow
def test_loop_measures_how_long_it_waits():
    fields, pause = tensors(random_batch(0)), 0.2

    def wait(i):
        time.sleep(pause)
        return i

    slow = tf.data.Dataset.range(3).map(lambda i: tf.py_function(wait, [i], tf.int64))
    batches = slow.map(lambda i: {**fields, "number": i})
    step = make_step(sizes=ONE_LAYER)
    waited = step.loop(iter(batches), 3)["input_seconds"].numpy()
    assert (waited > pause / 2).all()


def assert_bits_equal(found, expected):
    for name, values in expected.items():
        for one, other in zip(found[name], values, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.slow
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
    set_state(step, start, 0)
    step(split_batch(random_batch(0), strategy))
    step.optimizer.iterations.assign(2)
    step(split_batch(random_batch(2), strategy))
    assert_bits_equal(training_state(step), after)


@pytest.mark.slow
def test_gradient_of_one_replica_that_is_not_finite():
    """The loss is finite and so is the other replica's gradient: all the same none updates."""

    class Overflowing(TrainingStep):
        def _accumulate(self, weights, step, replica, batch, *rest, **others):
            sums, gradients = super()._accumulate(weights, step, replica, batch, *rest, **others)
            own = tf.reduce_any(batch["input_ids"][:, 0] == 59)
            return sums, [tf.where(own, np.inf, 1.0) * gradients[0], *gradients[1:]]

    strategy = two_devices()
    step = make_step(strategy=strategy, step_class=Overflowing, sizes=ONE_LAYER)
    batch, before = random_batch(0), training_state(step)
    for last, skipped in ((59, 1), (5, 0)):
        batch["input_ids"][:, 0] = [5] * 7 + [last]
        metrics = {name: float(v) for name, v in step(split_batch(batch, strategy)).items()}
        assert metrics["skipped"] == skipped and np.isfinite(metrics["loss"])
        assert np.isfinite(metrics["gradient_norm"]) != skipped
        if skipped:
            assert_bits_equal(training_state(step), before)


@pytest.mark.parametrize("recompute", ("none", "block"))
def test_what_keras_is_told_not_to_train_stays(recompute):
    model = tiny_model(dropout=RATE, **ONE_LAYER)
    model.encoder.trainable = False
    optimizer = OPTIMIZERS["adamw"](1e-2)
    optimizer.build(model.trainable_variables)
    before = weights_of(model)
    step_of(model, optimizer, recompute=recompute)(tensors(random_batch(0)))
    for name, value in weights_of(model).items():
        assert (value == before[name]).all() == name.startswith("bert/"), name
