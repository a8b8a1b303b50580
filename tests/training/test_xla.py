"""XLA really compiles the gradients of the step, once for every replica, as its dumps show."""

import os
import re

import pytest
import tensorflow as tf

from bert_tf import pretraining
from bert_tf.checkpoint_files import list_checkpoints
from tests.support.paths import PYTHONPATH
from tests.support.programs import PretrainingJob, arrays, curves, one_line
from tests.support.tiny_models import make_step, random_batch, split_batch, strategy_of
from tests.support.workers import start_workers, wait_for

# Prints a marker after each part, then how many modules have been dumped so far.
PROGRAM = """
import os, sys
if sys.argv[1] == "mirrored":
    import tests.support.every_test  # two logical CPUs
import tensorflow as tf
from tests.support.tiny_models import make_step, random_batch, tensors
from bert_tf.training.distribution import barrier, make_strategy
strategy = make_strategy(sys.argv[1])
sizes = {"num_hidden_layers": int(sys.argv[2])}
parts = {
    "off": {"xla": False},
    "on": {"xla": True},
    "recompute": {"xla": True, "recompute": "block"},
}

def batches(context):
    # Two global batches; each element is a replica's part of one.
    replicas = context.num_replicas_in_sync
    part = tensors(random_batch(0, size=32 // replicas, length=32))
    count = 2 * replicas // context.num_input_pipelines
    return tf.data.Dataset.from_tensors(part).repeat(count)

data = strategy.distribute_datasets_from_function(batches)
for name in sys.argv[3:]:
    step = make_step(strategy=strategy, sizes=sizes, dropout=0.1, **parts[name])
    if parts[name]["xla"]:
        step.compile(data.element_spec, 32 // strategy.num_replicas_in_sync)
    for batch in data:
        step(batch)
    files = os.listdir(os.environ["DUMP"]) if os.path.isdir(os.environ["DUMP"]) else []
    print(name, sum(file.endswith("cpu_after_optimizations.txt") for file in files))
barrier(strategy)
"""

# Products of a block's forward pass: query, key, value, scores, context, output, two of the
# feed-forward part.
BLOCK = 8


def products(layers, again=0):
    """How many matrix products a training step of the tiny model has.

    Args:
        layers: how many blocks.
        again: how many of them run a second time for the gradient.
    """
    # Token types, pooler, both layers of the masked words' head, sentence pairs.
    forward = layers * BLOCK + 5
    # Two more for the gradient of each, one of token types: nothing is learned of one-hot rows.
    backward = 2 * forward - 1
    return forward + backward + again * BLOCK


def run(folder, strategy, layers, parts, count=1):
    """Runs the parts; returns, for each process, what it wrote and what XLA dumped."""
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    dumps = [folder / f"dump{i}" for i in range(count)]
    environments = [
        {
            "DUMP": str(dump),
            "PYTHONPATH": PYTHONPATH,
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={dump} "
            "--xla_dump_hlo_as_text --xla_dump_hlo_module_re=.*_accumulate_.*",
        }
        for dump in dumps
    ]
    command = [program, strategy, layers, *parts]
    with start_workers(command, folder, count, environments) as workers:
        wait_for(workers)
        written = [worker.stdout.split() for worker in workers]
    return written, dumps


def count_products(dump):
    """The matrix products of each compiled module of the forward and backward pass, in order."""
    paths = sorted(dump.glob("*_accumulate_*cpu_after_optimizations.txt"))
    return [len(re.findall(r" dot\(", path.read_text(encoding="utf-8"))) for path in paths]


def bytes_used(dump):
    """The memory of each module as XLA plans it."""
    paths = sorted(dump.glob("*_accumulate_*memory-usage-report.txt"))
    return [int(re.search(r"Total bytes used: (\d+)", path.read_text())[1]) for path in paths]


# Operations that choose what runs next by a value, for which the host has to wait.
CONTROL_FLOW = {"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"}


@pytest.mark.slow
@pytest.mark.parametrize("devices, optimizer", ((1, "adamw"), (2, "lamb")))
def test_a_step_is_two_compiled_calls_without_a_branch_between_them(devices, optimizer):
    strategy = strategy_of(devices)
    step = make_step("bert", optimizer, strategy=strategy, xla=True, xla_update=True, dropout=0.1)
    batch = split_batch(random_batch(0), strategy)
    graph = step.run.get_concrete_function(batch, step._worker_metrics(False, 0.0, 0.0)).graph
    nodes = graph.as_graph_def().node
    assert sum(node.attr["_XlaMustCompile"].b for node in nodes) == 2 * devices
    assert not CONTROL_FLOW & {node.op for node in nodes}


@pytest.mark.slow
def test_recomputation_saves_memory(tmp_path):
    """XLA could notice that blocks are computed twice, and keep the first results after all."""
    # Three layers, as the last one keeps little.
    (written,), (dump,) = run(tmp_path, "one_device", 3, ("on", "recompute"))
    assert written == ["on", "1", "recompute", "2"]
    assert count_products(dump) == [products(3), products(3, again=3)]
    kept, again = bytes_used(dump)
    assert again < 0.8 * kept


@pytest.mark.slow
@pytest.mark.parametrize("strategy, processes, each", (("mirrored", 1, 2), ("multi_worker", 2, 1)))
def test_every_replica_has_its_own(tmp_path, strategy, processes, each):
    written, dumps = run(tmp_path, strategy, 1, ("off", "on"), processes)
    assert written == [["off", "0", "on", str(each)]] * processes
    for dump in dumps:
        assert count_products(dump) == [products(1)] * each


@pytest.mark.slow
def test_where_xla_cannot_compile_the_run_continues_without(tmp_path, capsys, monkeypatch):
    job = PretrainingJob(tmp_path)
    sums = pretraining.loss_sums

    def with_text(outputs, batch):
        """Loss sums by way of text, which XLA does not know."""
        result = sums(outputs, batch)
        lengths = tf.strings.length(tf.strings.as_string(batch["input_ids"]))
        return {**result, "characters": tf.reduce_sum(tf.cast(lengths, tf.float32))}

    monkeypatch.setattr(pretraining, "loss_sums", with_text)
    held_out = {"eval_input_file": job.files[0], "eval_every_steps": 2}
    assert job.run(num_train_steps=3, xla="auto", **held_out) == 0
    shown = capsys.readouterr().err.replace("\r", "\n").splitlines()
    warned = [line for line in shown if line.startswith("warning")]
    assert len(warned) == 2 and all("AsString" in line for line in warned)
    assert "XLA cannot compile the step here, so it runs without" in warned[1]
    assert "XLA cannot compile the evaluation here, so it runs without" in warned[0]
    assert list_checkpoints(job.output) == [2, 3]  # before the first evaluation, and at the end
    assert [step for step, _ in curves(job.output / "eval")["loss/masked_lm"]] == [2, 3]
    # The attempt that failed did not count: neither in the learning rate nor in anything else.
    off = job.folder / "off"
    assert job.run(num_train_steps=3, output_dir=off, **held_out) == 0
    one, two = arrays(job.output, 3), arrays(off, 3)
    assert {n: v.tobytes() for n, v in one.items()} == {n: v.tobytes() for n, v in two.items()}
    capsys.readouterr()
    for flags, what in (
        ({"num_train_steps": 4, "output_dir": job.folder / "on"}, "the step"),
        ({"do_train": False, "do_eval": True}, "the evaluation"),
    ):
        assert job.run(**flags, xla="on") == 1
        assert f"--xla=on requires that XLA can compile {what} (" in one_line(capsys)
