"""Runs a program as a child process, then writes what it cost into the ledger."""

import contextlib
import ctypes
import dataclasses
import datetime
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.common import ROOT, peak_gib
from benchmarks.reference.ledger import Run, append_run, check_keys, find_run, this_machine
from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.json_text import read_json
from run_scripts.tools.glue_table import read_results

# Seconds between two writes of what a running program has cost: as much is lost if this process is
# killed.
SAVE_INTERVAL = 60

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h

# Seconds between two looks at whether the program has ended.
POLL_INTERVAL = 0.1

# Seconds for what a program leaves behind to end: multiprocessing's fork server, which has its
# workers' costs, ends when it notices that the program has.
LEFT_BEHIND_WAIT = 10


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a run has cost so far, over all its starts; a file of this keeps it."""

    command: str
    code: str | None = None  # of the first start, as `Run.code`; "+" too if a later one differs
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_gib: float = 0.0

    def plus(self, seconds, cpu_seconds=0.0, memory_gib=0.0):
        """Adds the cost of one more start."""
        return dataclasses.replace(
            self,
            seconds=self.seconds + seconds,
            cpu_seconds=self.cpu_seconds + cpu_seconds,
            memory_gib=max(self.memory_gib, memory_gib),
        )


def measure(name, arguments, read_scores, *, ledger, work_dir, seed=None):
    """Runs a program and appends its `Run` to a ledger; does nothing if the ledger has it.

    Stopped or killed and called again, it runs the program again, which must resume by itself; the
    costs of all starts are added up (a killed start counts up to the last full minute, without the
    processor's time). Of a run that ends with an error in its first minute nothing is kept. What
    the program prints goes where this process prints.

    Args:
        name: the run's, unique in the ledger.
        arguments: the command, a list; "python" stands for this interpreter. The program runs in
            the present folder.
        read_scores: a function without arguments that returns what the program has found, a dict
            name -> number, or {} if it has not come to its end, as after Ctrl-C;
            `functools.partial(read_scores, output_dir)` reads eval_results.txt.
        ledger: the file of runs.
        work_dir: the folder for the file that keeps what unfinished runs have cost.
        seed: of the run, if it has one.

    Returns:
        The `Run`.

    Raises:
        InputError: the program failed, or the name stands for another command in the ledger or in
            the cost of an unfinished run.
        KeyboardInterrupt: this process or the program was stopped; the same call goes on.
    """
    command = shlex.join(arguments)
    if run := find_run(ledger, name, command):
        return run
    make_writable(work_dir, "the folder of a measured run must be writable")
    path = os.path.join(work_dir, f"{name.replace('/', '+')}.cost.json")
    with _orphans_adopted():
        earlier = _read_cost(path, command, code_version())
        cost, status, stopped = _run_child(arguments, earlier, path)
    scores = {} if status else read_scores()
    if status and not stopped:
        if status > 0 and cost.seconds < SAVE_INTERVAL:
            os.remove(path)  # as after a wrong flag: the right command may take its place
        raise InputError(f"{command} must end with exit status 0. Received: {status}")
    if not scores:
        raise KeyboardInterrupt(f"{name} was stopped: the same command resumes from here")
    run = Run(
        name=name,
        command=command,
        machine=this_machine(),
        seed=seed,
        seconds=round(cost.seconds, 1),
        cpu_seconds=round(cost.cpu_seconds, 1),
        memory_gib=round(cost.memory_gib, 3),
        scores=scores,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        code=cost.code,
    )
    append_run(ledger, run)
    os.remove(path)
    if stopped:
        raise KeyboardInterrupt(f"stopped after {name}: the same command resumes from here")
    return run


def read_scores(folder):
    """The numbers in a folder's eval_results.txt, or the means in its seeds.tsv; {} without."""
    return {name: _score(mean) for name, (mean, _) in read_results(folder).items()}


def _score(value):
    return value if abs(value) < float("inf") else None  # NaN fails the comparison too


def _read_cost(path, command, code):
    """The `Cost` of the earlier starts of a run, in a file; none without it.

    Raises:
        InputError: the earlier starts had another command, whose checkpoints this one would resume.
    """
    if not os.path.exists(path):
        return Cost(command, code)
    values = read_json(Path(path).read_text(encoding="utf-8"), path)
    check_keys(values, Cost, path)
    if values["command"] != command:
        raise InputError(
            "an unfinished run must be finished by its own command (or remove what it wrote, and "
            f"{path}): {values['command']}. Received: {command}"
        )
    first = values["code"]
    if code != first and first and not first.endswith("+"):
        values["code"] = f"{first}+"
    return Cost(**values)


def _run_child(arguments, earlier, path):
    """Runs a command to its end, and writes its cost to the file `path` on the way.

    Ctrl-C reaches the program too, as it is in the terminal's group; it is waited for.

    Returns:
        The `Cost` of all starts, `earlier` included; the exit status, negative for a signal;
        whether there was a Ctrl-C.
    """
    program = [sys.executable if a == "python" else a for a in arguments[:1]] + arguments[1:]
    started = saved = time.monotonic()
    try:
        child = subprocess.Popen(program, stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent)
    except OSError as error:
        raise InputError(f"{arguments[0]} must start. Received: {error.strerror}") from None
    peak, process, stopped = 0.0, 0, False
    while not process:
        try:
            peak = max(peak, peak_gib(child.pid))
            process, status, usage = os.wait4(child.pid, os.WNOHANG)
            if time.monotonic() - saved >= SAVE_INTERVAL:
                saved = time.monotonic()
                write_json(path, dataclasses.asdict(earlier.plus(saved - started)))
            time.sleep(0 if process else POLL_INTERVAL)
        except KeyboardInterrupt:
            stopped = True
    seconds = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    ended = [usage, *_left_behind()]
    cpu_seconds = sum(each.ru_utime + each.ru_stime for each in ended)
    # A fork counts as the child, with the memory of this process: no more than that says nothing.
    own = _largest_gib(resource.getrusage(resource.RUSAGE_SELF))
    memory = max([peak, *(gib for gib in map(_largest_gib, ended) if gib > own or not peak)])
    cost = earlier.plus(seconds, cpu_seconds, memory)
    write_json(path, dataclasses.asdict(cost))
    return cost, child.returncode, stopped


@contextlib.contextmanager
def _orphans_adopted():
    """Has Linux make this process the parent of what the programs that it starts leave behind."""
    if sys.platform != "linux":
        yield
        return
    set_option = ctypes.CDLL(None).prctl
    set_option(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        set_option(PR_SET_CHILD_SUBREAPER, 0)  # other orphans are not its to wait for


def _left_behind():
    """Yields the `resource.struct_rusage` of each process that a program left behind, as it ends.

    The program has ended, and its processes are this one's children now.
    """
    end = time.monotonic() + LEFT_BEHIND_WAIT
    while time.monotonic() < end:
        try:
            process, _, usage = os.wait3(os.WNOHANG)
        except ChildProcessError:
            return
        if process:
            yield usage
        else:
            time.sleep(POLL_INTERVAL)


def _end_with_parent():
    """Has Linux end the calling process when its parent is killed; it may save its work first."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _largest_gib(usage):
    """The peak memory of the largest process of some that have ended, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB on Linux
    return usage.ru_maxrss * unit / 2**30


def code_version():
    """The git commit of the project's folder, with "+" where files have changed; None without."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        # The ledger itself changes with every run.
        changed = subprocess.run(
            [*git, "diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs"], capture_output=True
        ).returncode
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}+" if changed else commit
