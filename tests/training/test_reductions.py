"""Other reductions than the one that logical CPUs use train the same."""

import numpy as np
import pytest

from tests.support.paths import printed_by
from tests.support.training_checks import CASES, assert_same_training, run_steps

# TensorFlow's own choice for devices of one machine: collective operations in rings, for which
# several strategies in one process would disturb each other. NCCL needs GPUs; that they get it is
# asserted in test_distribution.py; rings between two workers train in test_step.py.
PROGRAM = """
import sys
import keras
import numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
keras.config.set_floatx("float64")
keras.config.set_dtype_policy("float64")
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
print("reduction:", type(strategy.extended._cross_device_ops).__name__)
from tests.support.tiny_models import make_step, optimize_graphs, random_batch, trained_variables
from tests.support.training_checks import run_steps, unequal_copies
optimize_graphs(False)
path, kind, optimizer_name, xla = sys.argv[1:]
numbers, state = run_steps(
    kind, optimizer_name, strategy=strategy, xla=xla == "True", xla_update=xla == "True"
)
np.savez(path, numbers=numbers, **state)

def dataset(context):
    examples = tf.data.Dataset.from_tensor_slices(random_batch(0, size=8))
    return examples.batch(4, drop_remainder=True).repeat()

step = make_step(kind, optimizer_name, strategy=strategy, dropout=0.3)
metrics = step.loop(iter(strategy.distribute_datasets_from_function(dataset)), 3)
print("losses:", metrics["loss"].shape, bool(np.isfinite(metrics["loss"]).all()))
print("unequal:", unequal_copies(strategy, trained_variables(step).values()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind, optimizer_name, xla", ((*CASES[0], False), (*CASES[1], True)))
def test_collective_operations_of_one_machine(float64, tmp_path, kind, optimizer_name, xla):
    program, path = tmp_path / "program.py", tmp_path / "state.npz"
    program.write_text(PROGRAM, encoding="utf-8")
    out = printed_by(program, path, kind, optimizer_name, xla, timeout=600)
    said = ["reduction: CollectiveAllReduce", "losses: (3,) True", "unequal: []"]
    assert out.splitlines() == said
    state = dict(np.load(path))
    assert_same_training((state.pop("numbers"), state), run_steps(kind, optimizer_name))
