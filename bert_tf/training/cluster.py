"""Reads from TF_CONFIG which workers train together."""

import dataclasses
import os
from collections.abc import Mapping

from bert_common.errors import InputError
from bert_common.json_text import parse_json

# The jobs whose workers train. If there is a job "chief", its worker comes first.
JOBS = ("chief", "worker")

EXAMPLE = (
    '{"cluster": {"worker": ["host1:5000", "host2:5000"]}, "task": {"type": "worker", "index": 0}}'
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers of a run."""

    workers: tuple[str, ...]  # the addresses, "host:port", the chief's first
    index: int  # the index of this process

    @property
    def is_chief(self) -> bool:
        """Whether this worker writes checkpoints and curves."""
        return self.index == 0


def read_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """Reads TF_CONFIG as `tf.distribute.MultiWorkerMirroredStrategy` does, and checks it.

    Returns None if TF_CONFIG is unset or empty. Raises an InputError if it is unusable.
    """
    text = environment.get("TF_CONFIG", "").strip()
    if not text:
        return None
    try:
        config = parse_json(text)
        jobs, task = dict(config["cluster"]), config["task"]
        addresses = [address for name in JOBS for address in jobs.get(name, ())]
        for address in addresses:
            _check_address(address)
        index = int(task["index"])  # TensorFlow also accepts "0", which some launchers write
        if not 0 <= index < len(jobs[task["type"]]):
            raise IndexError(index)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        raise InputError(
            f"TF_CONFIG must be JSON that names the workers and says which of them this is, for "
            f"example {EXAMPLE}. Received: {text[:200]!r}"
        ) from None
    unknown = [name for name in jobs if name not in JOBS]
    if unknown:
        raise InputError(
            f"the jobs of TF_CONFIG's cluster must be among {', '.join(JOBS)}. Received: "
            f"{', '.join(unknown)}"
        )
    if len(set(addresses)) < len(addresses):  # one of them would wait for ever
        raise InputError(
            f"every worker in TF_CONFIG must have its own address. Received: {', '.join(addresses)}"
        )
    chiefs = len(jobs.get("chief", ()))
    return Cluster(tuple(addresses), index + (chiefs if task["type"] == "worker" else 0))


def shorten_lost_worker_errors(cluster: Cluster | None) -> None:
    """Silences TensorFlow's many lines about a lost worker; `explain_lost_worker` prints one.

    Call it with the result of `read_cluster` before TensorFlow is imported.
    """
    if cluster:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _check_address(address):
    """Raises a ValueError if an address is not host:port."""
    host, _, port = address.rpartition(":")
    if not host or not 0 < int(port) < 2**16:
        raise ValueError(address)
