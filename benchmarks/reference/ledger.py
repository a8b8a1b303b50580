"""Keeps the ledger, which has a line of JSON for each measured run of a program.

A line has the run's command, machine, cost and scores. `measure.py` writes it, and `results.py`
prints tables of the ledger.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
from pathlib import Path

from benchmarks.common import ROOT
from bert_common.atomic_write import atomic_write
from bert_common.cpu import available_cores, this_cpu
from run_scripts.tools.check_devices.machine import memory_gib
from run_scripts.tools.check_devices.nvidia_smi import describe_gpus

# The project's own runs, which docs/results.md shows.
LEDGER = ROOT / "docs" / "results" / "runs.jsonl"


@dataclasses.dataclass(frozen=True)
class Machine:
    """The properties of a machine that determine how long a run takes."""

    processor: str
    cores: int  # the number of cores that the run may use
    memory_gib: float | None  # None if not known
    gpus: tuple[str, ...] = ()  # the names of all GPUs, even if the environment hides them
    # Linux's names of the processor's instructions that multiply bfloat16; None if not recorded.
    bfloat16: tuple[str, ...] | None = None

    def __str__(self):
        memory = "" if self.memory_gib is None else f", {self.memory_gib:.0f} GiB"
        gpus = "".join(f", {self.gpus.count(name)} x {name}" for name in dict.fromkeys(self.gpus))
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        instructions = ""
        if self.bfloat16 is not None:
            instructions = f" ({', '.join(self.bfloat16) or 'no bfloat16'})"
        return f"{self.processor}{instructions}, {cores}{memory}{gpus}"


def this_machine():
    """Returns the `Machine` that this process runs on."""
    memory, cpu = memory_gib(), this_cpu()
    return Machine(
        processor=cpu.name,
        cores=available_cores(),
        memory_gib=None if memory is None else round(memory, 1),
        gpus=tuple(gpu["name"] for gpu in describe_gpus()["gpus"] or ()),
        bfloat16=cpu.bfloat16_flags(),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run of a program, with its cost."""

    name: str  # unique; parts separated by "/", for example "nsmc/reference/seed1"
    command: str  # as typed in the project's folder
    machine: Machine  # the machine of its last start
    seed: int | None  # None if nothing in it is random
    seconds: float  # from start to end, summed over all parts if it was stopped and restarted
    # User and system time of all its processes; None if not measured, likewise for the memory.
    cpu_seconds: float | None
    memory_gib: float | None  # the peak of its largest process
    scores: dict  # name -> number; None for a score that is not defined, such as 0/0
    date: str  # the UTC date of the end, such as 2026-01-31
    code: str | None  # the git commit, with "+" if files had changed; None outside a checkout


def read_runs(path=LEDGER):
    """Reads a ledger.

    Args:
        path: the file; a missing file is an empty ledger.

    Returns:
        A dict from name to `Run`, in the order of the file.
    """
    if not os.path.exists(path):
        return {}
    runs = {}
    with open(path, "rb") as file:
        for line in file:
            run = _parse(line)
            assert run.name not in runs, f"{path} has two runs of the name {run.name}"
            runs[run.name] = run
    return runs


def find_run(path, name, command):
    """Returns the run of this name and command, or None if the ledger does not have the name."""
    run = read_runs(path).get(name)
    assert run is None or run.command == command, f"{name} of {path} is of: {run.command}"
    return run


def append_run(path, run):
    """Appends a `Run` to a ledger, which is created if it is missing.

    Several processes may append at the same time; readers only see complete lines. A name occurs
    once.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked_folder(path.parent):
        assert run.name not in read_runs(path), f"{path} has a run of the name {run.name}"
        earlier = path.read_bytes() if path.exists() else b""
        if earlier and not earlier.endswith(b"\n"):  # some editors omit the last newline
            earlier += b"\n"
        line = json.dumps(dataclasses.asdict(run), ensure_ascii=False, allow_nan=False)
        with atomic_write(str(path)) as file:
            file.write(earlier + f"{line}\n".encode())


@contextlib.contextmanager
def _locked_folder(folder):
    """Holds a lock on a folder, as a lock on the file would be lost when it is replaced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _parse(line):
    """Parses a line (bytes) to a `Run`."""
    values = json.loads(line)
    lists = ("gpus", "bfloat16")  # tuples in a `Machine`
    machine = {
        name: tuple(value) if name in lists and value is not None else value
        for name, value in values["machine"].items()
    }
    return Run(**{**values, "machine": Machine(**machine)})
