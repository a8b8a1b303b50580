"""Trains tiny models in ways that must all give the same result."""

import json

import keras
import numpy as np

from bert_tf.optimization import OPTIMIZERS
from bert_tf.training.replicas import local_values
from tests.support.paths import PYTHONPATH
from tests.support.tiny_models import (
    assert_close,
    first_state,
    make_step,
    random_batch,
    split_batch,
    step_of,
    strategy_of,
    trained_variables,
    without_graphs,
)
from tests.support.workers import start_workers, wait_for


def unequal_copies(strategy, variables):
    """The paths of variables whose copies on this worker's devices differ in any bit.

    Training keeps them equal without ever comparing them: a difference would stay and grow.
    """
    return [
        variable.path
        for variable in variables
        if len({copy.numpy().tobytes() for copy in local_values(strategy, variable.value)}) > 1
    ]


def train(make_model, batch, steps, devices=1, **options):
    """The state after AdamW's `steps` on a batch of arrays, and what each step returned.

    `make_model` takes no argument; `devices` is 1 or 2, or a strategy; `options` are those of
    `step_of`.
    """
    strategy = strategy_of(devices) if isinstance(devices, int) else devices
    keras.utils.set_random_seed(3)
    with strategy.scope():
        model = make_model()
        optimizer = OPTIMIZERS["adamw"](1e-2)
        optimizer.build(model.trainable_variables)
    step = step_of(model, optimizer, strategy, **options)
    metrics = [step(split_batch(batch, strategy)) for _ in range(steps)]
    return first_state(step), metrics


def assert_split_changes_nothing(make_model, batch, weight, floor=1e-6):
    """Two devices of two parts each, with examples of weight 0, against one device.

    `batch` has 8 rows, of which the last two have weight 0; `weight` is the metric that is the sum
    of the weights, and that sum.
    """
    states = []
    for devices, parts, count in ((1, 1, 6), (1, 1, 8), (2, 2, 8)):
        rows = {name: value[:count] for name, value in batch.items()}
        options = {"xla": False, "gradient_accumulation_steps": parts}
        with without_graphs():
            state, metrics = train(make_model, rows, 3, devices, **options)
        name, expected = weight
        assert [float(each[name]) for each in metrics] == [expected] * 3
        assert float(metrics[2]["loss"]) < float(metrics[0]["loss"])
        states.append(state)
    for state in states[1:]:
        assert_close(state, states[0], 1e-9, floor)


def assert_xla_and_recomputation_change_nothing(make_model, batch, floor=1e-6):
    """Two steps without either, and with both; arguments as above."""
    plain, _ = train(make_model, batch, 2, xla=False)
    both, _ = train(make_model, batch, 2, xla=True, recompute="block")
    assert_close(both, plain, 1e-9, floor)
    assert all(np.isfinite(value).all() for value in plain.values())


STEPS = 20
CLOSE = 1e-9
LAYERS = {"bert": 1, "albert": 2}  # one is traced sooner; that of ALBERT is called twice
CASES = (("bert", "adamw"), ("albert", "lamb"))


def run_steps(kind, optimizer_name, **options):
    """Losses and gradient norms of every step, then moments and weights by Google's name.

    Asserts that the replicas' copies of these are equal to the bit.
    """
    sizes = {"num_hidden_layers": LAYERS[kind]}
    step = make_step(kind, optimizer_name, sizes=sizes, **options)
    numbers = []
    for i in range(STEPS):
        metrics = step(split_batch(random_batch(i, size=16), step.strategy))
        # The norm too: clipping hides how long a gradient was.
        numbers.append([float(metrics["loss"]), float(metrics["gradient_norm"])])
    assert unequal_copies(step.strategy, trained_variables(step).values()) == []
    return np.array(numbers), first_state(step)


def assert_same_training(found, expected):
    """Losses, norms, weights, moments: equal in float64 up to rounding."""
    np.testing.assert_allclose(found[0], expected[0], atol=CLOSE, rtol=0)
    assert_close(found[1], expected[1], CLOSE, floor=1e-4)


# A worker that calls a function of a module with its strategy and options, and saves what it gets.
WORKER = """
import importlib
import json
import sys
import keras
import numpy as np
from bert_tf.training.distribution import barrier, make_strategy, worker_index
keras.config.set_floatx("float64")
keras.config.set_dtype_policy("float64")
strategy = make_strategy("multi_worker")
from tests.support.tiny_models import optimize_graphs
optimize_graphs(False)  # as in every_test.py: what it changes grows from step to step
folder, module, function, options = sys.argv[1:]
function = getattr(importlib.import_module(module), function)
numbers, state = function(strategy=strategy, **json.loads(options))
np.savez(f"{folder}/{worker_index(strategy)}.npz", numbers=numbers, **state)
barrier(strategy)
"""


def train_on_two_workers(folder, module, function, **options):
    """The numbers and the state that the function of a module returns, equal in both workers."""
    program = folder / "program.py"
    program.write_text(WORKER, encoding="utf-8")
    command = [program, folder, module, function, json.dumps(options)]
    environments = [{"PYTHONPATH": PYTHONPATH}] * 2
    with start_workers(command, folder, environments=environments) as workers:
        wait_for(workers)
    first, second = (dict(np.load(folder / f"{i}.npz")) for i in range(2))
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
    return first.pop("numbers"), first
