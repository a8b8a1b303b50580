"""Keeps the ledger, which has a line of JSON for each measured run of a program.

A line has the run's command, machine, cost and scores. `measure.py` writes it, and `results.py`
prints tables of the ledger.
"""

import contextlib
import dataclasses
import fcntl
import json
import math
import os
import re
from pathlib import Path

from benchmarks.common import ROOT
from bert_common.atomic_write import atomic_write
from bert_common.cpu import available_cores, this_cpu
from bert_common.errors import InputError
from bert_common.json_text import read_json
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

    def __post_init__(self):
        noted = [n for n in (self.cpu_seconds, self.memory_gib) if n is not None]
        numbers = [self.seconds, *noted]
        if not re.fullmatch(r"[^\s/]+(/[^\s/]+)*", self.name):
            raise InputError(
                "a run's name must be parts without spaces, separated by /. Received: "
                f"{self.name!r}"
            )
        if not all(type(n) in (int, float) and math.isfinite(n) and n >= 0 for n in numbers):
            raise InputError(
                f"seconds, cpu_seconds and memory_gib of {self.name} must be numbers of at least "
                f"0. Received: {numbers}"
            )
        for name, score in self.scores.items():
            is_number = type(score) in (int, float) and math.isfinite(score)
            if score is not None and not is_number:
                raise InputError(
                    f"scores of {self.name} must be numbers, or null where they are not defined. "
                    f"Received: {name}={score!r}"
                )


def read_runs(path=LEDGER):
    """Reads a ledger.

    Args:
        path: the file; a missing file is an empty ledger.

    Returns:
        A dict from name to `Run`, in the order of the file.

    Raises:
        InputError: a line is not a run, has unknown or missing keys, or repeats a name.
    """
    if not os.path.exists(path):
        return {}
    runs = {}
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}, line {number},"
            run = _parse(line, where)
            if run.name in runs:
                raise InputError(f"{where} must name each run once. Received: {run.name} twice")
            runs[run.name] = run
    return runs


def find_run(path, name, command):
    """Returns the run of this name, or None if the ledger does not have it.

    Raises:
        InputError: the ledger has it with a different command.
    """
    run = read_runs(path).get(name)
    if run is not None and run.command != command:
        raise InputError(
            f"a run's name must stand for one command (another name begins a new run), in {path} "
            f"{name} for: {run.command}. Received: {command}"
        )
    return run


def keep_to_one_ledger(folder, ledger):
    """Checks that a work folder belongs to a ledger, as stages finished there would seem free.

    Raises:
        InputError: the folder's runs are in a different ledger.
    """
    own = os.path.relpath(ledger, folder)
    known = kept_line(Path(folder) / "ledger.txt", own)
    if known != own:
        raise InputError(
            "the work of another ledger must be in a new folder. Received: "
            f"{ledger} for {folder}, whose runs are in {os.path.join(folder, known)}"
        )


def kept_line(path, value):
    """Returns the line in a file, writing `value` if the file is missing or empty."""
    path = Path(path)
    kept = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""
    if not kept:
        with atomic_write(str(path)) as file:
            file.write(f"{value}\n".encode())
    return kept or value


def append_run(path, run):
    """Appends a `Run` to a ledger, which is created if it is missing.

    Several processes may append at the same time; readers only see complete lines.

    Raises:
        InputError: the ledger has a run of this name, is damaged, or cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked_folder(path.parent):
        if run.name in read_runs(path):
            raise InputError(f"{path} must name each run once. Received: {run.name} twice")
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


def _parse(line, where):
    """Parses a line (bytes) to a `Run`; `where` names the file and the line."""
    values = read_json(line, where)
    check_keys(values, Run, where)
    check_keys(values["machine"], Machine, f"{where} machine")
    if not isinstance(values["scores"], dict):
        raise InputError(f"{where} scores must be an object. Received: {values['scores']!r}")
    try:
        lists = ("gpus", "bfloat16")  # tuples in a `Machine`
        machine = {
            name: tuple(value) if name in lists and value is not None else value
            for name, value in values["machine"].items()
        }
        return Run(**{**values, "machine": Machine(**machine)})
    except TypeError:
        raise InputError(f"{where} must hold a run. Received: {values!r:.200}") from None
    except InputError as error:
        raise InputError(f"{where} {error}") from None


def check_keys(values, record, where):
    """Raises an `InputError` unless a JSON object's keys are the fields of a dataclass."""
    fields = {field.name for field in dataclasses.fields(record)}
    if not isinstance(values, dict) or set(values) != fields:
        received = sorted(values) if isinstance(values, dict) else values
        raise InputError(
            f"{where} must have exactly the keys {', '.join(sorted(fields))}. Received: {received}"
        )
