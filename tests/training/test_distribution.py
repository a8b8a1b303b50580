"""The choice of devices, agreement between workers, lost workers."""

import json
import re
import signal
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.training.distribution import (
    barrier,
    check_agreement,
    describe_devices,
    explain_lost_worker,
    is_chief,
    lost_worker,
    make_strategy,
    worker_count,
    worker_index,
)
from run_scripts.downstream.training import FineTuning
from run_scripts.session import Session
from tests.support.tiny_models import two_devices
from tests.support.workers import start_workers, wait_for, wait_for_output

TWO = {"worker": ["a:1", "b.example.com:22222"]}


@pytest.fixture
def alone(monkeypatch):
    """No TF_CONFIG, whatever the shell has."""
    monkeypatch.delenv("TF_CONFIG", raising=False)


@pytest.mark.usefixtures("alone")
def test_strategies_of_one_process():
    one, two = make_strategy("one_device"), make_strategy("mirrored")
    assert make_strategy("auto").num_replicas_in_sync == one.num_replicas_in_sync == 1
    assert two.num_replicas_in_sync == 2
    assert (describe_devices(one), describe_devices(two)) == ("the CPU", "2 logical CPUs")
    for strategy in (one, two):
        assert (worker_count(strategy), worker_index(strategy)) == (1, 0)
        assert is_chief(strategy)


TWO_WORKERS = json.dumps({"cluster": TWO, "task": {"type": "worker", "index": 0}})
REFUSED = {
    "no GPUs": ({"num_gpus": 2}, None, "Received: --num_gpus=2, 0 GPUs"),
    "none of them": ({"num_gpus": 0}, None, "Received: --num_gpus=0, 0 GPUs"),
    "no TF_CONFIG": ({"name": "multi_worker"}, None, "TF_CONFIG is not set"),
    "mirrored workers": ({"name": "mirrored"}, TWO_WORKERS, "Received: mirrored, 2 workers"),
    "one of workers": ({"name": "one_device"}, TWO_WORKERS, "Received: one_device, 2 workers"),
    "TF_CONFIG": ({}, "{", "must be JSON"),
}


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("name", REFUSED)
def test_devices_that_are_not_there(name, monkeypatch):
    arguments, tf_config, expected = REFUSED[name]
    if tf_config:
        monkeypatch.setenv("TF_CONFIG", tf_config)
    with pytest.raises(InputError, match=re.escape(expected)):
        make_strategy(**arguments)


# arguments, devices of the strategy (None: the default one), how many GPUs are left visible
# (None: visibility was not changed)
GPUS = {
    "auto takes all": ({}, ["GPU:0", "GPU:1", "GPU:2"], None),
    "auto takes two": ({"num_gpus": 2}, ["GPU:0", "GPU:1"], 2),
    "auto takes one": ({"num_gpus": 1}, None, 1),
    "mirrored over all": ({"name": "mirrored", "num_gpus": 3}, ["GPU:0", "GPU:1", "GPU:2"], None),
    "mirrored over one": ({"name": "mirrored", "num_gpus": 1}, ["GPU:0"], 1),
    "the first": ({"name": "one_device"}, None, 1),
}


@pytest.fixture
def three_gpus(alone, monkeypatch):
    """Three GPUs, and a list of what is made visible and then of what strategy is made."""
    done = []
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: [f"{kind} {i}" for i in range(3)]
    )
    monkeypatch.setattr(
        tf.config, "set_visible_devices", lambda devices, kind: done.append((devices, kind))
    )

    def mirrored(devices, cross_device_ops):
        done.append((devices, type(cross_device_ops).__name__))

    def workers(communication_options):
        done.append(("workers", communication_options.implementation.name))

    monkeypatch.setattr(tf.distribute, "MirroredStrategy", mirrored)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", workers)
    return done


def visible(count):
    """The call that makes the first GPUs visible."""
    return [] if count is None else [([f"GPU {i}" for i in range(count)], "GPU")]


@pytest.mark.parametrize("name", GPUS)
def test_choice_of_gpus(name, three_gpus):
    arguments, devices, count = GPUS[name]
    chosen = make_strategy(**arguments)
    mirrored = [] if devices is None else [(devices, "NcclAllReduce")]
    assert three_gpus == visible(count) + mirrored
    assert devices is not None or chosen == tf.distribute.get_strategy()


@pytest.mark.parametrize("num_gpus, count", ((None, None), (3, None), (2, 2)))
def test_choice_of_gpus_of_each_worker(num_gpus, count, three_gpus, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", TWO_WORKERS)
    make_strategy("auto", num_gpus)
    assert three_gpus == visible(count) + [("workers", "NCCL")]


@pytest.mark.parametrize(
    "all_reduce, within, between",
    (
        ("auto", "NcclAllReduce", "NCCL"),
        ("nccl", "NcclAllReduce", "NCCL"),
        ("ring", "HierarchicalCopyAllReduce", "RING"),
    ),
)
def test_how_gpus_reduce(all_reduce, within, between, three_gpus, monkeypatch):
    """TensorFlow's own choice between workers is a ring of gRPC connections, with GPUs too."""
    make_strategy("mirrored", all_reduce=all_reduce)
    monkeypatch.setenv("TF_CONFIG", TWO_WORKERS)
    make_strategy("multi_worker", all_reduce=all_reduce)
    assert [how for _, how in three_gpus] == [within, between]


def test_cpus_reduce_without_nccl(three_gpus, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    monkeypatch.setenv("TF_CONFIG", TWO_WORKERS)
    make_strategy("multi_worker")
    assert three_gpus == [("workers", "RING")]
    with pytest.raises(InputError, match="--all_reduce=nccl must be used with GPUs"):
        make_strategy("multi_worker", all_reduce="nccl")


def test_one_gpu_is_left_as_it_is(three_gpus, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"{kind} 0"])
    for name in ("auto", "one_device"):
        assert make_strategy(name) == tf.distribute.get_strategy()
    assert three_gpus == []


def test_more_than_the_one_gpu_is_no_one_device(three_gpus):
    with pytest.raises(InputError, match="must be 1 for the distribution strategy one_device"):
        make_strategy("one_device", 2)
    with pytest.raises(InputError, match="Received: --num_gpus=4, 3 GPUs"):
        make_strategy("mirrored", 4)
    assert three_gpus == []


def test_port_in_use(monkeypatch):
    def fail(**_):
        raise tf.errors.UnknownError(None, None, "Could not start gRPC server\nmore")

    monkeypatch.setenv("TF_CONFIG", TWO_WORKERS)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", fail)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(InputError, match="Received: a:1: Could not start gRPC server$"):
        make_strategy()
    assert signal.getsignal(signal.SIGINT) == handler


def test_one_process_agrees_with_itself():
    for strategy in (tf.distribute.get_strategy(), two_devices()):
        check_agreement(strategy, {"--seed": 1})
        barrier(strategy)


# One pair of processes for all that needs one: a JSON line of what each part gave, then training
# without end. An error is one line and status 1, as in the other programs.
PROGRAM = """
import json, os, sys, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
import tensorflow as tf
from bert_tf.training import distribution
from run_scripts.flags.parser import _complain
from bert_common.errors import InputError
strategy = distribution.make_strategy("auto")
out = {}

def agree(name, settings):
    try:
        distribution.check_agreement(strategy, settings)
        out[name] = "agreed"
    except InputError as error:
        out[name] = str(error)

agree("same", {"--seed": 1, "--name": "한국어"})
agree("values", {"--seed": index, "--rate": 0.5, "--files": "x" * (1 + 1000 * index)})
agree("names", {"--seed": 1, **({"--more": "2"} if index else {"--other": 3})})
agree("same again", {"--seed": 2})

def refuse(name, reason):
    try:
        distribution.raise_together(strategy, reason)
        out[name] = "nobody refuses"
    except InputError as error:
        out[name] = str(error)

refuse("nobody", None)
refuse("the second", "the folder is taken" if index else None)
out["place"] = [distribution.worker_count(strategy), distribution.worker_index(strategy),
                distribution.is_chief(strategy), distribution.describe_devices(strategy)]
if index:
    time.sleep(1)  # without a barrier the other would be long past it
    open(os.environ["REACHED"], "w").close()
distribution.barrier(strategy)
out["barrier"] = os.path.exists(os.environ["REACHED"])
numbers = ("nan", "inf", "-inf", "-0.0", "0.1")
given = [5.0 if index else float(number) for number in numbers]
out["numbers"] = [str(distribution.number_of_chief(strategy, number)) for number in given]
print(json.dumps(out), flush=True)

def train():
    with strategy.scope():
        weight = tf.Variable(tf.ones([64, 64]))

    def replica_step(batch):
        context = tf.distribute.get_replica_context()
        gradient = context.all_reduce("sum", forward_backward(weight.value(), batch))
        context.merge_call(update, args=(gradient,))

    @tf.function(jit_compile=True)
    def forward_backward(weight, batch):
        return tf.tanh(weight @ weight + batch)

    def update(strategy, gradient):
        strategy.extended.update(weight, lambda w, g: w.assign(g * 0.1), args=(gradient,))

    @tf.function
    def steps(batches):
        for _ in tf.range(20):
            strategy.run(replica_step, args=(next(batches),))

    batches = iter(strategy.distribute_datasets_from_function(
        lambda context: tf.data.Dataset.from_tensors(1.0).repeat().prefetch(2)))
    for _ in range(1_000_000):
        steps(batches)
        print("steps", flush=True)

try:
    with distribution.explain_lost_worker(strategy):
        train()
except InputError as error:
    sys.exit(_complain(error))
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed", (0, 1))
def test_two_workers(tmp_path, killed):
    """They agree on all they must; if one is killed, the other ends with one line."""
    reached = {"REACHED": str(tmp_path / "reached")}
    with start_workers(PROGRAM, tmp_path, environments=[reached] * 2) as workers:
        wait_for_output(workers, "steps\nsteps\n")
        first, second = (json.loads(worker.stdout.splitlines()[0]) for worker in workers)
        survivor = workers[1 - killed]
        workers[killed].process.send_signal(signal.SIGKILL)
        wait_for([survivor], status=1, deadline=60)
    assert first.pop("place") == [2, 0, True, "2 workers with 1 CPU each"]
    assert second.pop("place") == [2, 1, False, "2 workers with 1 CPU each"]
    # The same error in both, so that neither continues alone.
    assert first == second
    must = "all workers must be started with the same flags and files. Received: "
    assert first == {
        "same": "agreed",
        "values": f"{must}--files is x at worker 0, {'x' * 60} at worker 1; "
        "--seed is 0 at worker 0, 1 at worker 1",
        "names": f"{must}--more is not given at worker 0, 2 at worker 1; "
        "--other is 3 at worker 0, not given at worker 1",
        "same again": "agreed",
        "nobody": "nobody refuses",
        "the second": "the folder is taken",
        "barrier": True,
        "numbers": ["nan", "inf", "-inf", "-0.0", "0.1"],
    }
    lines = survivor.stderr.splitlines()
    assert lines[-1].startswith("error: another worker has stopped (the last "), survivor.tail()
    assert "--output_dir. Received: " in lines[-1]
    assert "Traceback" not in survivor.stderr
    # TensorFlow warns of a function that is traced for every length of a text.
    assert "retracing" not in survivor.stderr


def test_what_a_lost_worker_raises():
    def made(kind, text):
        return kind(None, None, text)

    reset = made(
        tf.errors.UnavailableError,
        "Graph execution error:\n\nDetected at node x\n"
        "Collective ops is aborted by: Connection reset by peer\nAdditional GRPC information\n",
    )
    restarted = made(tf.errors.AbortedError, "It has likely restarted.")
    cancelled = made(tf.errors.CancelledError, "CANCELLED\nAdditional GRPC error information")
    nccl = made(tf.errors.InternalError, "NCCL: remote process exited or there was a network error")
    for error in (reset, restarted, cancelled, nccl):
        assert lost_worker(error)
    full = made(tf.errors.ResourceExhaustedError, "OOM when allocating")
    damaged = made(tf.errors.DataLossError, "corrupted record")
    ours = made(tf.errors.CancelledError, "Iterator was cancelled")
    shapes = made(
        tf.errors.InvalidArgumentError, "Collective ops is aborted by: Shape mismatch; GRPC"
    )
    for error in (full, damaged, ours, shapes):
        assert not lost_worker(error)

    two = mock.Mock(spec=tf.distribute.MultiWorkerMirroredStrategy)
    two.cluster_resolver.cluster_spec = lambda: tf.train.ClusterSpec(TWO)
    with pytest.raises(InputError, match="Received: Connection reset by peer$"):
        raise_within(explain_lost_worker(two), reset)
    silent = made(
        tf.errors.UnavailableError,
        "Collective ops is aborted by: The following tasks are unhealthy (stopped sending "
        "heartbeats):\n/job:worker/replica:0/task:1\nThe tasks have crashed.",
    )
    with pytest.raises(InputError, match=r"heartbeats\): /job:worker/replica:0/task:1$"):
        raise_within(explain_lost_worker(two), silent)
    with pytest.raises(tf.errors.DataLossError):
        raise_within(explain_lost_worker(two), damaged)
    two.num_replicas_in_sync, two.cluster_resolver.task_type = 4, "worker"
    two.cluster_resolver.task_id = 1
    fewer = made(
        tf.errors.InternalError,
        "Graph execution error:\n\nDetected at node x\nCollective ops is aborted by: Device "
        "/job:worker/replica:0/task:1/device:CPU:0 is joining a group with size4, but that group "
        "has size 2 (group_key=1)\nThe error could be from a previous operation.",
    )
    with pytest.raises(InputError, match="2 CPUs at worker 1, others at"):
        raise_within(explain_lost_worker(two), fewer)
    # With one worker a file system may be what is unavailable.
    with pytest.raises(tf.errors.UnavailableError):
        raise_within(explain_lost_worker(tf.distribute.get_strategy()), reset)


def raise_within(context, error):
    with context:
        raise error


def test_workers_compare_the_checkpoint_that_is_read(monkeypatch):
    compared = {}
    monkeypatch.setattr(Session, "check_agreement", lambda self, given: compared.update(given))
    job = SimpleNamespace(
        flags=SimpleNamespace(do_train=False, gradient_accumulation_steps=1),
        config=SimpleNamespace(),
        source="o/model.ckpt-3",
    )
    Session(tf.distribute.get_strategy(), "float32", "off", None).check_flags(job)
    assert compared["the checkpoint to start from"] == "o/model.ckpt-3"


def test_workers_compare_the_examples_of_fine_tuning():
    """Two data sets with as many examples differ in their tokens."""

    class Compared(Exception):
        """Ends the run before it needs a model."""

    def compared(lengths):
        examples = {"train": SimpleNamespace(lengths=np.array(lengths))}
        session = mock.Mock(check_agreement=mock.Mock(side_effect=Compared))
        job = SimpleNamespace(flags=None)
        with pytest.raises(Compared):
            FineTuning(job, session, None, examples, {}, None).run()
        return session.check_agreement.call_args

    assert compared([3, 4]) == compared([3, 4]) != compared([3, 5])
