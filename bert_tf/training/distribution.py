"""Chooses the devices that train together.

Workers notice that one of them died at the next all-reduce, or after ten seconds of missed
heartbeats. They may be restarted in any order. A worker that ends early looks dead to the others,
so programs end with a `barrier`.

Shapes: W workers, N bytes of the longest text, padded.
"""

import contextlib
import functools
import json
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from bert_common.errors import InputError
from bert_common.startup import replace_interrupt_handler
from bert_tf.training.cluster import JOBS, read_cluster

# In TensorFlow's error if the first collective operation finds that workers have other numbers or
# kinds of devices.
_OTHER_DEVICES = "is joining a group with"

# Texts are gathered in multiples of this size, so that texts of similar lengths share a function.
TEXT_BLOCK = 1024

# The maximum number of characters of a setting's value that an error shows.
SHOWN_CHARACTERS = 60


def make_strategy(
    name: str = "auto", num_gpus: int | None = None, all_reduce: str = "auto"
) -> tf.distribute.Strategy:
    """Creates the strategy that distributes training over the devices.

    Unused GPUs are hidden from TensorFlow, which would otherwise occupy their memory. To hide GPUs
    or use several workers, call this before TensorFlow computes anything or lists logical devices;
    otherwise it may be called at any time. With several workers, it returns when all of them have
    started.

    Args:
        name: "one_device": the first GPU, or the CPU; "mirrored": the GPUs of this machine (its
            logical CPUs if it has no GPU); "multi_worker": the GPUs of all workers in TF_CONFIG;
            "auto": the first of multi_worker (more than one worker), mirrored (more than one GPU)
            and one_device that applies.
        num_gpus: how many GPUs each worker uses, starting with the first; None for all.
        all_reduce: how gradients are summed over devices: "nccl", or "ring" for gRPC connections
            between workers and copies within a machine. "auto" is NCCL for GPUs; TensorFlow's own
            default between workers would be the ring even with GPUs.

    Raises:
        InputError: the devices do not exist, or TF_CONFIG does not fit.
        RuntimeError: TensorFlow already uses a GPU that would have to be hidden.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if num_gpus is not None and not 1 <= num_gpus <= len(gpus):
        raise InputError(
            "--num_gpus must be at least 1 and at most the number of visible GPUs. Received: "
            f"--num_gpus={num_gpus}, {len(gpus)} GPUs"
        )
    count = len(gpus) if num_gpus is None else num_gpus
    cluster = read_cluster(os.environ)
    workers = len(cluster.workers) if cluster else 1
    if name == "auto":
        name = "multi_worker" if workers > 1 else "mirrored" if count > 1 else "one_device"
    if name == "multi_worker" and cluster is None:
        raise InputError(
            "the distribution strategy multi_worker needs TF_CONFIG, which names the workers. "
            "Received: TF_CONFIG is not set"
        )
    if name != "multi_worker" and workers > 1:
        raise InputError(
            "when TF_CONFIG names several workers the distribution strategy must be "
            f"multi_worker (or unset TF_CONFIG). Received: {name}, {workers} workers"
        )
    if name == "one_device":
        if count > 1 and num_gpus is not None:
            raise InputError(
                "--num_gpus must be 1 for the distribution strategy one_device. Received: "
                f"--num_gpus={num_gpus}"
            )
        count = min(count, 1)
    if all_reduce == "nccl" and not count:
        raise InputError("--all_reduce=nccl must be used with GPUs. Received: 0 GPUs")
    if count < len(gpus):
        tf.config.set_visible_devices(gpus[:count], "GPU")
    nccl = bool(count) and all_reduce != "ring"
    if name == "multi_worker":
        return _multi_worker(cluster, nccl)
    return _mirrored(count, nccl) if name == "mirrored" else tf.distribute.get_strategy()


def _mirrored(count, nccl):
    """Creates a strategy for the first `count` GPUs, or for all logical CPUs if it is 0."""
    kind = "GPU" if count else "CPU"
    count = count or len(tf.config.list_logical_devices("CPU"))
    # CPUs use plain copies and sums. Collective operations would interfere if a process has several
    # strategies, and ReductionToOneDevice never returns inside a tf.while_loop.
    reduction = tf.distribute.NcclAllReduce if nccl else tf.distribute.HierarchicalCopyAllReduce
    return tf.distribute.MirroredStrategy(
        [f"{kind}:{i}" for i in range(count)], cross_device_ops=reduction()
    )


def _multi_worker(cluster, nccl):
    implementations = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=implementations.NCCL if nccl else implementations.RING
    )
    try:
        # Ctrl-C must end the process directly, because TensorFlow does not return to Python while
        # it waits for workers, so Python's own handler would never run.
        with replace_interrupt_handler(signal.SIG_DFL, instead_of=signal.default_int_handler):
            return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    except tf.errors.OpError as error:  # usually "Could not start gRPC server"
        raise InputError(
            "a worker must be able to listen on its port in TF_CONFIG, which must be free, and "
            f"to reach the others. Received: {cluster.workers[cluster.index]}: "
            f"{error.message.splitlines()[0]}"
        ) from None


def describe_devices(strategy: tf.distribute.Strategy) -> str:
    """Describes the devices, such as "2 GPUs", "the CPU" or "2 workers with 4 GPUs each"."""
    workers = worker_count(strategy)
    count = strategy.num_replicas_in_sync // workers
    gpu = bool(tf.config.list_logical_devices("GPU"))
    if workers > 1:
        return f"{workers} workers with {_own_devices(strategy)} each"
    if gpu:
        return _own_devices(strategy)
    return "the CPU" if count == 1 else f"{count} logical CPUs"


def _own_devices(strategy):
    """Describes this worker's devices, such as "4 GPUs" or "1 CPU"."""
    count = strategy.num_replicas_in_sync // worker_count(strategy)
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    return f"{count} {kind}{'s' * (count > 1)}"


def worker_count(strategy: tf.distribute.Strategy) -> int:
    """Returns the number of processes that train together."""
    return len(_workers(strategy)) or 1


def worker_index(strategy: tf.distribute.Strategy) -> int:
    """Returns the index of this process among the workers, from 0."""
    workers = _workers(strategy)
    if not workers:
        return 0
    resolver = strategy.cluster_resolver
    return workers.index((resolver.task_type, resolver.task_id))


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns True if this process writes checkpoints and curves."""
    return worker_index(strategy) == 0


def _workers(strategy):
    """Returns every worker's (job, index), the chief's first; empty for one worker."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return []
    jobs = strategy.cluster_resolver.cluster_spec().as_dict()
    return [(job, index) for job in JOBS for index in range(len(jobs.get(job, ())))]


def check_agreement(strategy: tf.distribute.Strategy, settings: Mapping[str, Any]) -> None:
    """Raises the same InputError in every worker if settings differ between workers.

    All workers must call it. `settings` maps names for the message, such as "--train_batch_size",
    to strings or numbers.
    """
    if worker_count(strategy) == 1:
        return
    mine = {name: str(value) for name, value in settings.items()}
    # The index is needed because TensorFlow sorts workers by name, the tenth before the second.
    texts = gather_texts(strategy, json.dumps([worker_index(strategy), mine]))
    workers = [given for _, given in sorted(map(json.loads, texts), key=lambda pair: pair[0])]
    names = sorted(set().union(*workers))
    differences = [name for name in names if len({given.get(name) for given in workers}) > 1]
    if differences:
        shown = "; ".join(_show_difference(name, workers) for name in differences)
        raise InputError(
            f"all workers must be started with the same flags and files. Received: {shown}"
        )


def _show_difference(name, workers):
    """Describes a difference, such as "--seed is 1 at worker 0, 2 at worker 1"."""
    places: dict[str | None, list[str]] = {}
    for index, given in enumerate(workers):
        places.setdefault(given.get(name), []).append(str(index))
    values = ", ".join(
        f"{'not given' if value is None else value[:SHOWN_CHARACTERS]} at worker {'+'.join(where)}"
        for value, where in places.items()
    )
    return f"{name} is {values}"


def raise_together(strategy: tf.distribute.Strategy, refusal_reason: str | None) -> None:
    """Raises an InputError in every worker if one of them has a reason; all must call it."""
    texts = gather_texts(strategy, refusal_reason or "")
    if any(texts):
        raise InputError("; ".join(filter(None, texts)))


def number_of_chief(strategy: tf.distribute.Strategy, number: float) -> float:
    """Returns the chief's number in every worker; all must call it."""
    text = repr(float(number)) if is_chief(strategy) else ""
    return float("".join(gather_texts(strategy, text)))


def barrier(strategy: tf.distribute.Strategy) -> None:
    """Returns when all workers have called it."""
    gather_texts(strategy, "")


def gather_texts(strategy: tf.distribute.Strategy, text: str) -> list[str]:
    """Returns the text of every worker, in no particular order; all workers must call it."""
    if worker_count(strategy) == 1:
        return [text]
    data = text.encode()
    lengths = _gather(strategy, [len(data)])[:, 0]  # [W]
    if not max(lengths):  # gathering empty arrays would end the process
        return [""] * len(lengths)
    # All-gather needs equal shapes, so shorter texts are padded.
    size = -(-max(lengths) // TEXT_BLOCK) * TEXT_BLOCK
    rows = _gather(strategy, [*data, *[0] * (size - len(data))])  # [W, N]
    return [
        bytes(row[:length].tolist()).decode() for row, length in zip(rows, lengths, strict=True)
    ]


def _gather(strategy, numbers):
    """Gathers equally many numbers from every worker as an int64 array [W, count]."""
    # int64 is an integer type that both NCCL and the CPU's ring can gather.
    numbers = tf.constant([numbers], tf.int64)  # [1, count]
    rows = _gather_function(strategy)(numbers).numpy()  # [replicas, count]
    # All replicas of a worker contribute the same numbers.
    return rows[:: strategy.num_replicas_in_sync // worker_count(strategy)]


@functools.cache
def _gather_function(strategy):
    """Traces one function per strategy, as retracing at each call would leak memory."""

    def gather(numbers):
        # TensorFlow gathers from devices; tf.identity places the argument on one.
        return tf.distribute.get_replica_context().all_gather(tf.identity(numbers), axis=0)

    @tf.function
    def run(numbers):
        rows = strategy.run(gather, args=(numbers,))
        return strategy.experimental_local_results(rows)[0]

    return run


def lost_worker(error: Exception) -> bool:
    """Returns True if the error means that another worker is lost.

    In a run with one worker, an unavailable file system raises the same errors.
    """
    if isinstance(error, tf.errors.UnavailableError | tf.errors.AbortedError):
        return True
    # During an all-reduce, these errors are raised instead; the second is NCCL's text.
    return (
        isinstance(error, tf.errors.CancelledError) and "RPC" in error.message
    ) or "remote process exited" in str(error)


@contextlib.contextmanager
def explain_lost_worker(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Turns the errors of a lost worker, or of one with other devices, into one-line InputErrors.

    Wrap everything after `make_strategy` in it, because creating a variable communicates too.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if worker_count(strategy) > 1 and _OTHER_DEVICES in error.message:
            raise InputError(
                "all workers must have the same number and kind of devices (--num_gpus limits "
                f"GPUs). Received: {_own_devices(strategy)} at worker {worker_index(strategy)}, "
                "others at another worker"
            ) from None
        if worker_count(strategy) == 1 or not lost_worker(error):
            raise
        lines = error.message.split("Collective ops is aborted by: ")[-1].splitlines()
        # After a colon, the second line names the worker.
        reason = " ".join(lines[: 2 if lines[0].endswith(":") else 1]).strip()
        raise InputError(
            "another worker has stopped (the last line it printed gives the reason): restart all "
            "workers with the same command to continue from the newest checkpoint in "
            f"--output_dir. Received: {reason[:200]}"
        ) from None
