"""Records the cost of a program, run as a child process, in the ledger."""

import contextlib
import ctypes
import dataclasses
import datetime
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.common import ROOT, peak_gib
from benchmarks.reference.ledger import Run, append_run, find_run, this_machine
from bert_common.atomic_write import write_json
from run_scripts.tools.glue_table import read_results

# Seconds between two writes of a running program's cost. This much is lost if this process is
# killed.
SAVE_INTERVAL = 60

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h

# Seconds between two checks whether the program has ended.
POLL_INTERVAL = 0.1

# Seconds to wait for processes that a program leaves behind. multiprocessing's fork server, which
# has its workers' costs, ends when it notices that the program has ended.
LEFT_BEHIND_WAIT = 10


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of a run so far, over all its starts, as kept in a file."""

    command: str
    code: str | None = None  # `Run.code` of the first start, with "+" if a later one differs
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

    If it was stopped or killed, the same call runs the program again, which must resume on its own.
    The costs of all starts are added up; a killed start counts up to the last full minute, without
    CPU time. Nothing is kept of a run that fails in its first minute. The program's output goes to
    this process's output.

    Args:
        name: the run's name, unique in the ledger.
        arguments: the command, a list; "python" stands for this interpreter. The program runs in
            the current folder.
        read_scores: a function without arguments that returns the program's results, a dict
            name -> number, or {} if the program has not finished, as after Ctrl-C;
            `functools.partial(read_scores, output_dir)` reads eval_results.txt.
        ledger: the file of runs.
        work_dir: the folder for the files with the costs of unfinished runs.
        seed: the run's seed, if it has one.

    Returns:
        The `Run`.

    Raises:
        CalledProcessError: the program failed.
        KeyboardInterrupt: this process or the program was stopped; the same call resumes it.
    """
    command = shlex.join(arguments)
    if run := find_run(ledger, name, command):
        return run
    os.makedirs(work_dir, exist_ok=True)
    path = os.path.join(work_dir, f"{name.replace('/', '+')}.cost.json")
    with _orphans_adopted():
        earlier = _read_cost(path, command, code_version())
        cost, status, stopped = _run_child(arguments, earlier, path)
    scores = {} if status else read_scores()
    if status and not stopped:
        if status > 0 and cost.seconds < SAVE_INTERVAL:
            os.remove(path)  # so that a command with a corrected flag can take its place
        raise subprocess.CalledProcessError(status, command)
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
    """Reads a folder's eval_results.txt, or the means in its seeds.tsv; {} if there is neither."""
    return {name: _score(mean) for name, (mean, _) in read_results(folder).items()}


def _score(value):
    return value if abs(value) < float("inf") else None  # NaN fails the comparison too


def _read_cost(path, command, code):
    """Reads the `Cost` of a run's earlier starts; returns an empty one if there is no file.

    Their command must be the same, as checkpoints of another one would be resumed.
    """
    if not os.path.exists(path):
        return Cost(command, code)
    values = json.loads(Path(path).read_text(encoding="utf-8"))
    assert values["command"] == command, f"remove what it wrote, and {path}: {values['command']}"
    first = values["code"]
    if code != first and first and not first.endswith("+"):
        values["code"] = f"{first}+"
    return Cost(**values)


def _run_child(arguments, earlier, path):
    """Runs a command to its end, and regularly writes its cost to the file `path`.

    Ctrl-C also reaches the program, which is in the terminal's group; this waits until it ends.

    Returns:
        The `Cost` of all starts including `earlier`, the exit status (negative for a signal), and
        whether there was a Ctrl-C.
    """
    program = [sys.executable if a == "python" else a for a in arguments[:1]] + arguments[1:]
    started = saved = time.monotonic()
    child = subprocess.Popen(program, stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent)
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
    # A fork starts with this process's memory, so a peak up to that says nothing about the program.
    own = _largest_gib(resource.getrusage(resource.RUSAGE_SELF))
    memory = max([peak, *(gib for gib in map(_largest_gib, ended) if gib > own or not peak)])
    cost = earlier.plus(seconds, cpu_seconds, memory)
    write_json(path, dataclasses.asdict(cost))
    return cost, child.returncode, stopped


@contextlib.contextmanager
def _orphans_adopted():
    """Makes this process, on Linux, the parent of processes that its programs leave behind."""
    if sys.platform != "linux":
        yield
        return
    set_option = ctypes.CDLL(None).prctl
    set_option(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        set_option(PR_SET_CHILD_SUBREAPER, 0)  # this process must not wait for other orphans


def _left_behind():
    """Yields the `resource.struct_rusage` of each process left behind by a program, as it ends.

    The program has ended, so its processes are now this one's children.
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
    """Makes Linux send SIGTERM to the calling process when its parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _largest_gib(usage):
    """Returns the peak memory in GiB of the largest of some ended processes."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB on Linux
    return usage.ru_maxrss * unit / 2**30


def code_version():
    """Returns the project's git commit, with "+" if files have changed; None without git."""
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
