"""The choice of devices, agreement between workers, lost workers."""

import json
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
    make_strategy,
    worker_count,
    worker_index,
)
from run_scripts.downstream.training import FineTuning
from run_scripts.session import Session
from tests.support.refusals import refused
from tests.support.tiny_models import two_devices
from tests.support.workers import start_workers, wait_for

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


@pytest.fixture
def machine(alone, monkeypatch):
    """Pretends so many GPUs; a list of those made visible and of what a strategy was made of."""
    done = []

    def mirrored(devices, cross_device_ops):
        done.append((devices, type(cross_device_ops).__name__))

    def workers(communication_options):
        done.append(communication_options.implementation.name)

    def pretend(gpus):
        names = [f"GPU {i}" for i in range(gpus)]
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: names)
        return done

    monkeypatch.setattr(
        tf.config, "set_visible_devices", lambda devices, kind: done.append(devices)
    )
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", mirrored)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", workers)
    return pretend


TWO_WORKERS = json.dumps({"cluster": TWO, "task": {"type": "worker", "index": 0}})
REFUSED = {
    "no GPUs": (0, {"num_gpus": 2}, "", "Received: --num_gpus=2, 0 GPUs"),
    "none of them": (0, {"num_gpus": 0}, "", "Received: --num_gpus=0, 0 GPUs"),
    "more than there are": (3, {"name": "mirrored", "num_gpus": 4}, "", "--num_gpus=4, 3 GPUs"),
    "two for one": (3, {"name": "one_device", "num_gpus": 2}, "", "must be 1 for the distribution"),
    "no TF_CONFIG": (0, {"name": "multi_worker"}, "", "TF_CONFIG is not set"),
    "mirrored workers": (0, {"name": "mirrored"}, TWO_WORKERS, "Received: mirrored, 2 workers"),
    "one of workers": (0, {"name": "one_device"}, TWO_WORKERS, "Received: one_device, 2 workers"),
    "TF_CONFIG": (0, {}, "{", "must be JSON"),
    "NCCL": (0, {"all_reduce": "nccl"}, TWO_WORKERS, "--all_reduce=nccl must be used with GPUs"),
}


@pytest.mark.parametrize("gpus, arguments, tf_config, expected", REFUSED.values(), ids=REFUSED)
def test_devices_that_are_not_there(machine, monkeypatch, gpus, arguments, tf_config, expected):
    done = machine(gpus)
    monkeypatch.setenv("TF_CONFIG", tf_config)
    with refused(expected):
        make_strategy(**arguments)
    assert done == []


# GPUs, arguments, the calls: which are made visible, devices of a mirrored strategy, workers'
# reduction. TensorFlow's own choice between workers is a ring of gRPC connections, with GPUs too.
VISIBLE, NAMES = ["GPU 0", "GPU 1"], ["GPU:0", "GPU:1", "GPU:2"]
MIRRORED, NCCL, COPIES = {"name": "mirrored"}, "NcclAllReduce", "HierarchicalCopyAllReduce"
CHOSEN = {
    "auto takes all": (3, {}, [(NAMES, NCCL)]),
    "auto takes two": (3, {"num_gpus": 2}, [VISIBLE, (NAMES[:2], NCCL)]),
    "auto takes one": (3, {"num_gpus": 1}, [VISIBLE[:1]]),
    "auto has one": (1, {}, []),
    "mirrored over all": (3, {**MIRRORED, "num_gpus": 3}, [(NAMES, NCCL)]),
    "mirrored over one": (3, {**MIRRORED, "num_gpus": 1}, [VISIBLE[:1], (NAMES[:1], NCCL)]),
    "mirrored by NCCL": (3, {**MIRRORED, "all_reduce": "nccl"}, [(NAMES, NCCL)]),
    "mirrored by copies": (3, {**MIRRORED, "all_reduce": "ring"}, [(NAMES, COPIES)]),
    "the first": (3, {"name": "one_device"}, [VISIBLE[:1]]),
    "the only one": (1, {"name": "one_device"}, []),
}
OF_WORKERS = {
    "all": (3, {"name": "auto"}, ["NCCL"]),
    "three": (3, {"num_gpus": 3}, ["NCCL"]),
    "two": (3, {"num_gpus": 2}, [VISIBLE, "NCCL"]),
    "by NCCL": (3, {"name": "multi_worker", "all_reduce": "nccl"}, ["NCCL"]),
    "by a ring": (3, {"name": "multi_worker", "all_reduce": "ring"}, ["RING"]),
    "of CPUs": (0, {"name": "multi_worker"}, ["RING"]),
}


@pytest.mark.parametrize("gpus, arguments, expected", CHOSEN.values(), ids=CHOSEN)
def test_choice_of_gpus(machine, gpus, arguments, expected):
    done = machine(gpus)
    chosen = make_strategy(**arguments)
    assert done == expected
    assert chosen in (None, tf.distribute.get_strategy())  # None: of the mirrored one above


@pytest.mark.parametrize("gpus, arguments, expected", OF_WORKERS.values(), ids=OF_WORKERS)
def test_choice_of_gpus_of_each_worker(machine, monkeypatch, gpus, arguments, expected):
    done = machine(gpus)
    monkeypatch.setenv("TF_CONFIG", TWO_WORKERS)
    make_strategy(**arguments)
    assert done == expected


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


# One pair of processes for all that needs one: a JSON line of what each part gave.
PROGRAM = """
import json, os, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
from bert_tf.training import distribution
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
"""


@pytest.mark.slow
def test_two_workers_agree(tmp_path):
    reached = {"REACHED": str(tmp_path / "reached")}
    with start_workers(PROGRAM, tmp_path, environments=[reached] * 2) as workers:
        wait_for(workers)
        first, second = (json.loads(worker.stdout.splitlines()[0]) for worker in workers)
        # TensorFlow warns of a function that is traced for every length of a text.
        assert not any("retracing" in worker.stderr for worker in workers)
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


ABORTED = "Graph execution error:\n\nDetected at node x\nCollective ops is aborted by: "
TASK = "/job:worker/replica:0/task:1"
# An error, what is said of a lost worker; None where none is lost.
LOST = {
    "reset": (
        tf.errors.UnavailableError,
        f"{ABORTED}Connection reset by peer\nAdditional GRPC information\n",
        "Received: Connection reset by peer$",
    ),
    "restarted": (tf.errors.AbortedError, "It has likely restarted.", "has likely restarted"),
    "cancelled": (tf.errors.CancelledError, "CANCELLED\nAdditional GRPC error", "CANCELLED$"),
    "NCCL": (
        tf.errors.InternalError,
        "NCCL: remote process exited or there was a network error",
        "remote process exited",
    ),
    "silent": (
        tf.errors.UnavailableError,
        f"{ABORTED}The following tasks are unhealthy (stopped sending heartbeats):\n{TASK}\nThe",
        rf"heartbeats\): {TASK}$",
    ),
    "other devices": (
        tf.errors.InternalError,
        f"{ABORTED}Device {TASK}/device:CPU:0 is joining a group with size4, but that group has "
        "size 2 (group_key=1)\nThe error could be from a previous operation.",
        "2 CPUs at worker 1, others at",
    ),
    "memory": (tf.errors.ResourceExhaustedError, "OOM when allocating", None),
    "damage": (tf.errors.DataLossError, "corrupted record", None),
    "an iterator": (tf.errors.CancelledError, "Iterator was cancelled", None),
    "shapes": (tf.errors.InvalidArgumentError, f"{ABORTED}Shape mismatch; GRPC", None),
}


@pytest.mark.parametrize("kind, text, message", LOST.values(), ids=LOST)
def test_what_a_lost_worker_raises(kind, text, message):
    two = mock.Mock(spec=tf.distribute.MultiWorkerMirroredStrategy, num_replicas_in_sync=4)
    spec = tf.train.ClusterSpec(TWO)
    two.cluster_resolver = SimpleNamespace(cluster_spec=lambda: spec, task_type="worker", task_id=1)
    expected = InputError if message else kind
    with pytest.raises(expected, match=message), explain_lost_worker(two):
        raise kind(None, None, text)
    # With one worker a file system may be what is unavailable.
    with pytest.raises(kind), explain_lost_worker(tf.distribute.get_strategy()):
        raise kind(None, None, text)


def test_workers_compare_the_checkpoint_that_is_read(monkeypatch):
    compared = {}
    monkeypatch.setattr(Session, "check_agreement", lambda self, given: compared.update(given))
    flags = SimpleNamespace(do_train=False, gradient_accumulation_steps=1)
    job = SimpleNamespace(flags=flags, config=SimpleNamespace(), source="o/model.ckpt-3")
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
