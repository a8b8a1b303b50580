"""Reads from TF_CONFIG which workers train together."""

import dataclasses
import os
import re
from collections.abc import Mapping

from bert_common.errors import InputError
from bert_common.json_text import parse_json

# The jobs whose workers train. If there is a job "chief", its worker comes first.
JOBS = ("chief", "worker")

EXAMPLE = (
    '{"cluster": {"worker": ["host1:5000", "host2:5000"]}, "task": {"type": "worker", "index": 0}}'
)

# A name, an IPv4 address or an IPv6 address in brackets, then the port.
ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})")


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
    except ValueError as error:
        raise InputError(
            f"TF_CONFIG must be JSON, for example {EXAMPLE}. Received: {text[:100]!r} ({error})"
        ) from None
    if not isinstance(config, dict) or not config:
        raise InputError(f"TF_CONFIG must be an object, for example {EXAMPLE}. Received: {text}")
    jobs = _read_jobs(config.get("cluster"))
    return Cluster(
        workers=tuple(address for name in JOBS for address in jobs.get(name, ())),
        index=_read_index(config.get("task"), jobs),
    )


def shorten_lost_worker_errors(cluster: Cluster | None) -> None:
    """Silences TensorFlow's many lines about a lost worker; `explain_lost_worker` prints one.

    Call it with the result of `read_cluster` before TensorFlow is imported.
    """
    if cluster:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _read_jobs(cluster):
    """Checks and returns the addresses of each job."""
    if not isinstance(cluster, dict) or not cluster:
        raise InputError(
            f"TF_CONFIG must name the workers, for example {EXAMPLE}. Received: cluster={cluster!r}"
        )
    for job, addresses in cluster.items():
        if job not in JOBS:
            raise InputError(
                f"the jobs of TF_CONFIG's cluster must be among {', '.join(JOBS)}. Received: {job}"
            )
        if not isinstance(addresses, list) or not addresses:
            raise InputError(f"TF_CONFIG must list the addresses of {job}. Received: {addresses!r}")
        for address in addresses:
            match = ADDRESS.fullmatch(address) if isinstance(address, str) else None
            if not match or not 0 < int(match[2]) < 2**16:
                raise InputError(
                    f"the addresses in TF_CONFIG must be host:port. Received: {address!r}"
                )
    if len(cluster.get("chief", ())) > 1:
        raise InputError(f"TF_CONFIG may name one chief. Received: {', '.join(cluster['chief'])}")
    workers = [address for addresses in cluster.values() for address in addresses]
    twice = sorted({address for address in workers if workers.count(address) > 1})
    if twice:
        raise InputError(
            "the addresses of the workers in TF_CONFIG must differ. Received: "
            f"{', '.join(twice)} more than once"
        )
    return cluster


def _read_index(task, jobs):
    """Checks the task and returns this process's index among the workers; the chief's is 0."""
    if not isinstance(task, dict) or not {"type", "index"} <= set(task):
        raise InputError(
            "TF_CONFIG must say which worker this is, for example "
            f'"task": {{"type": "worker", "index": 0}}. Received: task={task!r}'
        )
    job, index = task["type"], task["index"]
    if not isinstance(job, str) or job not in jobs:
        raise InputError(
            f"the type of TF_CONFIG's task must be a job of its cluster ({', '.join(jobs)}). "
            f"Received: {job!r}"
        )
    # TensorFlow also accepts "0", which some launchers write.
    if not re.fullmatch(r"\d+", str(index)):
        raise InputError(f"the index of TF_CONFIG's task must be a number. Received: {index!r}")
    if int(index) >= len(jobs[job]):
        raise InputError(
            f"the index of TF_CONFIG's task must be below {len(jobs[job])}, the number of "
            f"addresses of {job}. Received: {index}"
        )
    return int(index) + (len(jobs.get("chief", ())) if job == "worker" else 0)
