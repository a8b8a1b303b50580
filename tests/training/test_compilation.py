"""XLA compiles what --xla asks for; on CPUs auto chooses what is fastest there."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.training.xla import Compiled, choose_compilation, compiled_by_all
from tests.support.paths import printed_by
from tests.support.workers import start_workers, wait_for

# Trains a tiny model; prints the losses. With an argument, XLA clusters operations.
PROGRAM = """
import json, sys
from bert_common.import_tensorflow import import_tensorflow
import_tensorflow()
from tests.support.tiny_models import make_step, random_batch, split_batch
import tensorflow as tf
from bert_tf.training.xla import enable_auto_clustering
if sys.argv[1:]:
    enable_auto_clustering()
strategy = tf.distribute.get_strategy()
step = make_step(strategy=strategy, policy="mixed_bfloat16", dropout=0.1, recompute="block")
batch = split_batch(random_batch(0), strategy)
print(json.dumps([float(step(batch)["loss"]) for _ in range(10)]))
"""


@pytest.mark.parametrize(
    "xla, precision, gpus, expected",
    (
        ("auto", "float32", 0, ((True, False, True), "on")),
        ("auto", "bfloat16", 0, ((False, True, True), "auto-clustering")),
        ("auto", "float16", 0, ((False, True, True), "auto-clustering")),
        ("auto", "bfloat16", 2, ((True, False, True), "on")),
        ("on", "bfloat16", 0, ((True, False, True), "on")),
        ("off", "bfloat16", 0, ((False, False, False), "off")),
        ("off", "float32", 2, ((False, False, False), "off")),
    ),
)
def test_choice(monkeypatch, xla, precision, gpus, expected):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * gpus)
    compiled = choose_compilation(xla, precision)
    assert (tuple(compiled), str(compiled)) == expected


def digits(compilation):
    """How many digits a number has, by way of text, which XLA does not know."""
    return tf.function(
        lambda number: tf.strings.length(tf.strings.as_string(number)),
        jit_compile=compilation.whole,
    )


def test_what_xla_cannot_compile():
    """It runs without if that is left to us, is one line if it is not."""
    function = Compiled(digits, "auto", "float32", "the count")
    with pytest.warns(match="XLA cannot compile the count here, so it runs without: .*AsStr"):
        assert int(function(tf.constant(123))) == 3
    assert int(function(tf.constant(12345))) == 5
    assert int(Compiled(digits, "off", "float32", "the count")(tf.constant(12))) == 2
    with pytest.raises(InputError, match="--xla=on requires that XLA can compile the count"):
        Compiled(digits, "on", "float32", "the count")(tf.constant(12))


@pytest.mark.slow
def test_between_the_products(tmp_path):
    """XLA compiles many parts, none with a product in it; training stays the same."""

    def run(*arguments):
        dump = tmp_path / f"dump{len(arguments)}"
        flags = f"--xla_dump_to={dump} --xla_dump_hlo_as_text"
        losses = json.loads(printed_by("-c", PROGRAM, *arguments, XLA_FLAGS=flags))
        paths = dump.glob("*cluster_*cpu_after_optimizations.txt")
        return np.array(losses), [path.read_text(encoding="utf-8") for path in paths]

    plain, none = run()
    losses, parts = run("between")
    assert not none
    # A block's forward pass has five parts between its products at the least.
    assert len(parts) >= 2 * 5
    assert not any(" dot(" in text for text in parts)
    # Rounding differs where XLA keeps more bits; from step to step that grows.
    np.testing.assert_allclose(losses[:4], plain[:4], rtol=1e-3)
    assert losses[-1] < losses[0]


# Worker 1 meets the error named by its argument where it compiles; prints what was chosen.
DECISION = """
import sys
import tensorflow as tf
from bert_common.errors import InputError
from bert_tf.training.distribution import make_strategy, barrier, worker_index
from bert_tf.training.xla import compiled_by_all
strategy = make_strategy("multi_worker")
message = "XLA cannot, says a test"

def compile(made):
    if worker_index(strategy) == 1 and sys.argv[1] == "cannot":
        raise tf.errors.InvalidArgumentError(None, None, message)

for xla in ("auto", "on"):
    try:
        print(xla, compiled_by_all(lambda c: c, compile, xla, "float32", strategy, "a step"))
    except InputError as error:
        print(xla, "refused:", error)
barrier(strategy)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "error, auto, on",
    (("none", "auto on", "on on"), ("cannot", "auto off", "on refused: --xla=on")),
)
def test_workers_decide_together(tmp_path, error, auto, on):
    """What one of them cannot compile none compiles; else they would wait for each other."""
    with start_workers(["-c", DECISION, error], tmp_path) as workers:
        wait_for(workers)
        for worker in workers:
            first, second = worker.stdout.splitlines()[-2:]
            assert first == auto and second.startswith(on)
            warned = "XLA cannot compile a step here, so it runs without: XLA cannot, says a test"
            assert (warned in worker.stderr) == (error == "cannot")


@pytest.mark.parametrize(
    "kind, text, of_xla",
    (
        (tf.errors.ResourceExhaustedError, "", False),
        (tf.errors.UnavailableError, "", False),
        (tf.errors.InternalError, "NCCL operation ncclAllReduce failed", False),
        (tf.errors.InternalError, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal ...", False),
        # Code that the GPU cannot run.
        (tf.errors.InternalError, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: ...", True),
    ),
)
@pytest.mark.parametrize("once", (True, False))
def test_which_errors_are_called_xla_s(kind, text, of_xla, once):
    """Others are raised, and nothing is tried again."""
    tried = []

    def make(compilation):
        tried.append(compilation.whole)

        def call():
            if compilation.whole:
                raise kind(None, None, text)

        return call

    expected = pytest.warns(match="cannot compile a step here") if of_xla else pytest.raises(kind)
    with expected:
        if once:
            strategy = tf.distribute.get_strategy()
            compiled_by_all(make, lambda call: call(), "auto", "float32", strategy, "a step")
        else:
            Compiled(make, "auto", "float32", "a step")()
    assert tried == [True, False][: 1 + of_xla]
