"""Ten training steps, learning rates: equal to what Google's code computed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoint import google_variables
from bert_tf.optimization import OPTIMIZERS, WarmupPolynomialDecay
from tests.support.crosses import but_slow
from tests.support.golden import (
    GOLDEN,
    TRAJECTORY,
    arrays,
    batch_of,
    facts,
    optimizer_of,
    pretraining_model,
    set_weights,
)
from tests.support.tiny_models import step_of

# The folder with the results, the one with start weights and batches, the optimizer.
TRAJECTORIES = (
    ("bert_optim_adamw", "bert_optim_adamw", "adamw"),
    ("albert_optim_lamb_onehot", "albert_optim_lamb", "lamb"),
    ("albert_optim_adamw_onehot", "albert_optim_lamb", "adamw"),
)
# In the quick run AdamW under XLA, LAMB without.
QUICK = ((*TRAJECTORIES[0], True), (*TRAJECTORIES[1], False))


# Of a tensor's largest entry, after ten free-running steps in float32.
MOMENTS = 1e-4


def expected_state(folder, step):
    """Weights, and moments where the files have them, after a number of steps."""
    if (GOLDEN / folder / f"variables_step{step}.npz").exists():
        return arrays(folder, f"variables_step{step}.npz")
    reader = tf.train.load_checkpoint(str(GOLDEN / folder / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize(
    "folder, start, optimizer_name, xla",
    but_slow([(*each, xla) for each in TRAJECTORIES for xla in (True, False)], QUICK),
)
def test_ten_steps(folder, start, optimizer_name, xla):
    model = pretraining_model(start)
    set_weights(model, arrays(start, "start_variables.npz"))
    googles = facts(folder, "trajectory.json")["per_step"]
    optimizer = optimizer_of(folder, optimizer_name, model)
    step = step_of(model, optimizer, xla=xla, xla_update=True)
    for i in range(10):
        metrics = {k: float(v) for k, v in step(batch_of(start, i + 1)).items()}
        assert metrics["loss"] == pytest.approx(googles["total_loss"][i], abs=TRAJECTORY)
        # The true norm and that without duplicates differ by 0.6 %.
        assert metrics["gradient_norm"] == pytest.approx(googles["global_norm"][i], rel=1e-5)
        assert metrics["learning_rate"] == pytest.approx(googles["learning_rate_used"][i], rel=1e-6)
        if i + 1 in (1, 10):
            compare(model, optimizer, expected_state(folder, i + 1), has_moments=i + 1 == 10)
    assert optimizer.iterations.numpy() == 10


def compare(model, optimizer, expected, has_moments):
    """Checks every weight and moment against the stored ones."""
    for name, variable in google_variables(model).items():
        first, second = optimizer.slot_variables(variable)
        found = {name: variable, f"{name}/adam_m": first, f"{name}/adam_v": second}
        assert not has_moments or set(found) <= set(expected)
        for key in set(found) & set(expected):
            bound = TRAJECTORY
            if key != name:
                # Moments are small: a share of the largest entry, by which zeros would fail.
                # The floors are for the key bias, whose gradient is zero up to rounding.
                floor = 1e-9 if key.endswith("adam_m") else 1e-15
                bound = min(bound, max(MOMENTS * np.abs(expected[key]).max(), floor))
            np.testing.assert_allclose(
                found[key].numpy(), expected[key], atol=bound, rtol=0, err_msg=key
            )


@pytest.mark.parametrize("folder", ("bert_optim_adamw", "albert_optim_lamb"))
def test_learning_rates(folder):
    for stored in facts(folder, "learning_rate_schedules.json"):
        options = {"power": stored.get("poly_power", 1.0)}
        options["start_warmup_step"] = stored.get("start_warmup_step", 0)
        sizes = (stored["init_lr"], stored["steps"], stored["warm"])
        schedule = WarmupPolynomialDecay(*sizes, **options)
        for step, rate in enumerate(stored["lr_by_global_step"]):
            # Google's rate is negative before the warm-up begins, which is not kept.
            assert float(schedule(step)) == pytest.approx(max(rate, 0.0), rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_keras_calls_of_apply_do_the_same_update(name):
    """Fine-tuning with Keras's own loop goes through `apply`."""
    rng = np.random.default_rng(0)
    layer = keras.layers.Dense(3)
    layer.build((None, 4))
    optimizer = OPTIMIZERS[name](0.1)
    optimizer.build(layer.trainable_variables)
    gradients = [rng.normal(size=v.shape).astype(np.float32) for v in layer.trainable_variables]
    expected = [
        optimizer.updated(
            v.numpy(), [s.numpy() for s in optimizer.slot_variables(v)], g, 0.1, decayed, 0
        )
        for v, g, decayed in zip(layer.trainable_variables, gradients, (True, False), strict=True)
    ]
    assert [optimizer.is_decayed(v) for v in layer.trainable_variables] == [True, False]
    optimizer.apply([tf.constant(g) for g in gradients], layer.trainable_variables)
    for variable, (weight, slots) in zip(layer.trainable_variables, expected, strict=True):
        found_slots = optimizer.slot_variables(variable)
        for found, value in zip((variable, *found_slots), (weight, *slots), strict=True):
            np.testing.assert_allclose(found.numpy(), value, rtol=1e-5, atol=1e-7)
    assert int(optimizer.iterations) == 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rows_of_a_table_are_a_gradient_too(name):
    """What `GradientTape` returns of an embedding table; one of the rows is named twice."""
    rng = np.random.default_rng(0)
    start = rng.normal(size=(5, 4)).astype(np.float32)
    rows = tf.IndexedSlices(tf.constant(start[:3]), tf.constant([3, 0, 3]), tf.constant([5, 4]))
    found = []
    for gradient in (rows, tf.convert_to_tensor(rows)):
        table = keras.Variable(start, name="table")
        optimizer = OPTIMIZERS[name](0.1)
        optimizer.build([table])
        optimizer.apply([gradient], [table])
        found.append([v.numpy() for v in (table, *optimizer.slot_variables(table))])
    np.testing.assert_equal(*found)
