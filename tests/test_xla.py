"""XLA really compiles the forward and backward pass, once for every replica, as its dumps show."""

import os
import re
from pathlib import Path

import pytest
from workers import ROOT, start_workers, wait_for

# Prints a marker after each part, then how many modules have been dumped so far.
PROGRAM = """
import os, sys
if sys.argv[1] == "mirrored":
    import conftest  # two logical CPUs
from tiny import make_step, random_batch, split_batch
from bert_tf.distribution import barrier, make_strategy
strategy = make_strategy(sys.argv[1])
parts = {
    "off": {"xla": False},
    "on": {"xla": True},
    "recompute": {"xla": True, "recompute": "block"},
}
for name in sys.argv[2:]:
    sizes = {"num_hidden_layers": 3}  # the last one keeps little
    step = make_step(strategy=strategy, sizes=sizes, dropout=0.1, **parts[name])
    for i in range(2):
        step(split_batch(random_batch(i, size=32, length=32), strategy))
    if not os.path.isdir(os.environ["DUMP"]):
        print(name, 0)
    else:
        files = os.listdir(os.environ["DUMP"])
        print(name, sum(file.endswith("cpu_after_optimizations.txt") for file in files))
barrier(strategy)
"""

# Products of the tiny model's forward pass: eight in each of three blocks (query, key, value,
# scores, context, output, two of the feed-forward part); token types, pooler, both layers of
# the masked words' head, sentence pairs.
BLOCKS = 3 * 8
FORWARD = BLOCKS + 5

# Two more for the gradient of each, one of token types: nothing is learned of the one-hot rows.
BACKWARD = 2 * FORWARD - 1


def run(folder, strategy, parts, count=1):
    """Runs the parts; returns, for each process, what it wrote and what XLA dumped."""
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    dumps = [folder / f"dump{i}" for i in range(count)]
    environments = [
        {
            "DUMP": str(dump),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)]),
            "XLA_FLAGS": f"--xla_dump_to={dump} --xla_dump_hlo_as_text "
            "--xla_dump_hlo_module_re=.*forward_backward.*",
        }
        for dump in dumps
    ]
    command = [program, strategy, *parts]
    with start_workers(command, folder, count, environments) as workers:
        wait_for(workers, deadline=600)
        written = [worker.stdout.split() for worker in workers]
    return written, dumps


def modules(dump):
    """The text of each compiled module of the forward and backward pass, in order."""
    paths = sorted(dump.glob("*forward_backward*cpu_after_optimizations.txt"))
    return [path.read_text(encoding="utf-8") for path in paths]


def count_products(text):
    return len(re.findall(r" dot\(", text))


def bytes_used(dump):
    """The memory of each module as XLA plans it."""
    paths = sorted(dump.glob("*forward_backward*memory-usage-report.txt"))
    return [int(re.search(r"Total bytes used: (\d+)", path.read_text())[1]) for path in paths]


def test_one_device(tmp_path):
    (written,), (dump,) = run(tmp_path, "one_device", ("off", "on", "recompute"))
    assert written == ["off", "0", "on", "1", "recompute", "2"]
    kept, again = modules(dump)
    assert count_products(kept) == FORWARD + BACKWARD
    # The blocks run twice, and XLA does not merge the two runs ...
    assert count_products(again) == FORWARD + BACKWARD + BLOCKS
    # ... which would keep the memory that the second run is to save.
    kept, again = bytes_used(dump)
    assert again < 0.8 * kept


@pytest.mark.slow
@pytest.mark.parametrize("strategy, processes, each", (("mirrored", 1, 2), ("multi_worker", 2, 1)))
def test_every_replica_has_its_own(tmp_path, strategy, processes, each):
    written, dumps = run(tmp_path, strategy, ("off", "on"), processes)
    assert written == [["off", "0", "on", str(each)]] * processes
    for dump in dumps:
        assert [count_products(text) for text in modules(dump)] == [FORWARD + BACKWARD] * each
