"""Keeps a line of JSON for each measured run of a program.

The line holds what was run and where, what it cost, what it gave. `measure.py` writes it,
`results.py` prints tables of it.
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
    """What decides how long a run takes."""

    processor: str
    cores: int  # that the run may use
    memory_gib: float | None  # None: the system does not tell
    gpus: tuple[str, ...] = ()  # their names; those that the environment hides count too
    # The processor's instructions that multiply bfloat16, as Linux names them; None: not noted.
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
    """The `Machine` that this process runs on."""
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
    """A run of a program that ended, with its cost."""

    name: str  # parts separated by "/", for example "nsmc/reference/seed1"; one run has it
    command: str  # as it is typed in the project's folder
    machine: Machine  # of its last start
    seed: int | None  # None: nothing in it is random
    seconds: float  # from start to end; of all its parts, if it was stopped and started again
    # Of all its processes, user and system; None, as for the memory, where nobody counted it.
    cpu_seconds: float | None
    memory_gib: float | None  # the most that one of its processes held
    scores: dict  # name -> number; None where a score is not defined, such as 0/0
    date: str  # of the end, UTC: 2026-01-31
    code: str | None  # the git commit, with "+" where files had changed; None outside a checkout

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
        path: the file; one that does not exist holds no run.

    Returns:
        A dict: name -> `Run`, in the order of the file.

    Raises:
        InputError: a line is not a run, has an unknown or lacks a key, or repeats a name.
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
    """The run of this name if the ledger has it, else None.

    Raises:
        InputError: the ledger has it with another command.
    """
    run = read_runs(path).get(name)
    if run is not None and run.command != command:
        raise InputError(
            f"a run's name must stand for one command (another name begins a new run), in {path} "
            f"{name} for: {run.command}. Received: {command}"
        )
    return run


def keep_to_one_ledger(folder, ledger):
    """Refuses the work folder of another ledger: what is finished there would seem to cost nothing.

    Raises:
        InputError: the folder's runs are in another ledger.
    """
    own = os.path.relpath(ledger, folder)
    known = kept_line(Path(folder) / "ledger.txt", own)
    if known != own:
        raise InputError(
            "the work of another ledger must be in a new folder. Received: "
            f"{ledger} for {folder}, whose runs are in {os.path.join(folder, known)}"
        )


def kept_line(path, value):
    """The line that a file keeps; a missing or empty file is given `value`."""
    path = Path(path)
    kept = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""
    if not kept:
        with atomic_write(str(path)) as file:
            file.write(f"{value}\n".encode())
    return kept or value


def append_run(path, run):
    """Appends a `Run` to a ledger, which is created if it is missing.

    Several processes may append at the same time; a reader sees whole lines alone.

    Raises:
        InputError: the ledger has a run of this name, is damaged, or cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked_folder(path.parent):
        if run.name in read_runs(path):
            raise InputError(f"{path} must name each run once. Received: {run.name} twice")
        earlier = path.read_bytes() if path.exists() else b""
        if earlier and not earlier.endswith(b"\n"):  # as some editors leave a file
            earlier += b"\n"
        line = json.dumps(dataclasses.asdict(run), ensure_ascii=False, allow_nan=False)
        with atomic_write(str(path)) as file:
            file.write(earlier + f"{line}\n".encode())


@contextlib.contextmanager
def _locked_folder(folder):
    """Holds the lock of a folder: a lock on the file would be lost when the file is replaced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _parse(line, where):
    """The `Run` of a line, bytes; `where` names the file and the line."""
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
    """Refuses a parsed JSON object whose keys are not the fields of the dataclass `record`."""
    fields = {field.name for field in dataclasses.fields(record)}
    if not isinstance(values, dict) or set(values) != fields:
        received = sorted(values) if isinstance(values, dict) else values
        raise InputError(
            f"{where} must have exactly the keys {', '.join(sorted(fields))}. Received: {received}"
        )
