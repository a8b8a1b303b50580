"""A step is two compiled calls on each device, without a branch between them."""

import collections

import pytest
import tensorflow as tf

from tests.support.paths import printed_by
from tests.support.tiny_models import make_step, random_batch, split_batch, strategy_of, two_devices

# Operations that choose what runs next by a value, for which the host has to wait.
CONTROL_FLOW = {"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"}


@pytest.mark.slow
@pytest.mark.parametrize("devices, optimizer", ((1, "adamw"), (2, "lamb")))
def test_graph_of_a_step(devices, optimizer):
    strategy = strategy_of(devices)
    step = make_step("bert", optimizer, strategy=strategy, xla=True, xla_update=True, dropout=0.1)
    batch = split_batch(random_batch(0), strategy)
    graph = step.run.get_concrete_function(batch, step._worker_metrics(False, 0.0, 0.0)).graph
    nodes = graph.as_graph_def().node
    compiled = sum(node.attr["_XlaMustCompile"].b for node in nodes)
    assert compiled == 2 * devices
    assert not CONTROL_FLOW & {node.op for node in nodes}


def test_branches_are_noticed():
    step = make_step(strategy=two_devices())

    @tf.function(autograph=False)
    def run(x):
        return tf.cond(tf.reduce_any(x > 0), lambda: step.weights[0] + 1.0, lambda: 0.0 * x[0])

    ops = {node.op for node in run.get_concrete_function(tf.ones([3])).graph.as_graph_def().node}
    assert CONTROL_FLOW & ops


# Dumps the programs that XLA compiles, and counts in a trace how often one is executed.
PROGRAM = """
import glob, sys
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2
from tests.support.tiny_models import make_step, random_batch, tensors
step = make_step("bert", xla=True, xla_update=True, dropout=0.1)
batch = tensors(random_batch(0))
step(batch)
with tf.profiler.experimental.Profile(sys.argv[1]):
    for _ in range(5):
        step(batch)
(path,) = glob.glob(sys.argv[1] + "/**/*.xplane.pb", recursive=True)
space = xplane_pb2.XSpace.FromString(open(path, "rb").read())
for plane in space.planes:
    names = {number: entry.name for number, entry in plane.event_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            print(names[event.metadata_id])
"""


@pytest.mark.slow
def test_dump_and_trace(tmp_path):
    dump, trace = tmp_path / "dump", tmp_path / "trace"
    flags = f"--xla_dump_to={dump} --xla_dump_hlo_as_text"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    events = collections.Counter(printed_by(program, trace, XLA_FLAGS=flags).splitlines())
    assert events["CpuExecutable::ExecuteAsyncOnStream"] == 2 * 5
    assert not [name for name in events if "cond" in name.lower() or name in CONTROL_FLOW]
    modules = [path.name for path in dump.glob("*.before_optimizations.txt")]
    assert sorted("accumulate" in name for name in modules) == [False, True]
