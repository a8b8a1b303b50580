"""Runs tasks in separate processes, which may die or hang."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_common.progress import progress
from run_scripts.tools.check_devices.worker import ANSWERS, SHOWN_CHARACTERS

# The command that starts a process for the tasks of a file.
COMMAND = (sys.executable, "-m", "run_scripts.tools.check_devices.worker")

# A process that gives no answer for this long is assumed to hang, unless the task says otherwise.
SILENCE_SECONDS = 300


Job = Mapping[str, Any]  # a task, which a worker gets as JSON
Answer = dict[str, Any]
Environments = Callable[[], list[dict[str, str]]]


def run_groups(
    groups: Sequence[tuple[Sequence[Job], Environments]], title: str
) -> list[tuple[Job, Answer]]:
    """Runs groups of tasks in parallel, and the tasks of a group one after another.

    The groups are arguments of `run_group`. Returns each task with its answer.
    """
    answers: list[list[Answer]] = [[] for _ in groups]
    running = dict(enumerate(run_group(*group) for group in groups))
    with progress(title, sum(len(tasks) for tasks, _ in groups), "checks") as bar:
        while running:
            time.sleep(0.05)
            for i, group in list(running.items()):
                for answer in group:
                    if answer is None:
                        break
                    answers[i].append(answer)
                    bar.update()
                else:
                    del running[i]
    return [
        pair
        for (tasks, _), group_answers in zip(groups, answers, strict=True)
        for pair in zip(tasks, group_answers, strict=True)
    ]


def run_group(tasks: Sequence[Job], environments: Environments) -> Iterator[Answer | None]:
    """Runs tasks one after another in new processes, and starts new ones if these die.

    Args:
        tasks: dicts; "kind" names a function, see `worker.function_of`.
        environments: a function that returns a list of dicts, the environment variables of each
            process; all processes work on every task together.

    Yields:
        An answer to each task: a dict with "result", which is "ok", "wrong: ..." or
        "failed: ...", and numbers. None while the next answer is not ready.
    """
    done = 0
    while done < len(tasks):
        for answer in _attempt(tasks[done:], environments()):
            done += answer is not None
            yield answer


def _attempt(tasks, environments):
    """Runs a group until the processes die; yields at least one answer."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"tasks{i}" for i in range(len(environments))]
        processes = []
        try:
            for path, environment in zip(paths, environments, strict=True):
                processes.append(_start(path, tasks, environment))
            done, num_received, last = 0, 0, time.monotonic()
            while done < len(tasks):
                # In this order, so that answers written just before the end are read.
                ended = [process.poll() is not None for process in processes]
                answers = [_read_answers(path) for path in paths]  # a list for each process
                if sum(map(len, answers)) > num_received:
                    num_received, last = sum(map(len, answers)), time.monotonic()
                while done < min(map(len, answers)):
                    answer = _worst([given[done] for given in answers])
                    done += 1
                    yield answer
                    if len(processes) > 1 and answer["result"].startswith("failed"):
                        return  # a sum that only some processes have joined would block them
                if done == len(tasks):
                    return
                dead = [
                    i for i, given in enumerate(answers) if ended[i] and len(given) < len(tasks)
                ]
                longest = tasks[done].get("silence_seconds", SILENCE_SECONDS)
                if dead or time.monotonic() - last > longest:
                    known = [given[done] for given in answers if len(given) > done]
                    known.append(
                        {"result": f"failed: {_describe_end(dead, longest, processes, paths)}"}
                    )
                    yield _worst(known)
                    return
                yield None
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _start(path, tasks, environment):
    """Starts a process for the tasks."""
    path.write_text(json.dumps(tasks), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    settings = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "KERAS_BACKEND": "tensorflow",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # several processes share a GPU
    }
    with open(path.with_suffix(".err"), "w") as errors:
        return subprocess.Popen(
            [*COMMAND, str(path)],
            env={**inherited, **settings, **environment},
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
        )


def _read_answers(path):
    """Reads the answers that a process has written so far."""
    try:
        text = path.with_suffix(ANSWERS).read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _worst(answers):
    """Returns the first answer that is not "ok", otherwise the one with the largest difference."""
    bad = [answer for answer in answers if answer["result"] != "ok"]
    return bad[0] if bad else max(answers, key=lambda answer: answer.get("difference", 0))


def _describe_end(dead, longest, processes, paths):
    """Describes why there is no answer."""
    if not dead:
        return f"no answer for {longest} s"
    status = processes[dead[0]].returncode
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    text = paths[dead[0]].with_suffix(".err").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    # The line of a failed check in C++, which is above a stack trace.
    fatal = [line for line in lines if re.match(r"F\d{4} |F\d{4}-", line)]
    return f"the process ended with {name}: {(fatal or lines)[-1].strip()}"[:SHOWN_CHARACTERS]


def worker_environments(gpus: int) -> list[dict[str, str]]:
    """Returns the environment variables of two processes here that are workers of one run.

    With two or more GPUs, each worker uses one GPU, otherwise the CPU.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}
            ),
            "CUDA_VISIBLE_DEVICES": visible[i] if gpus > 1 else "-1",
        }
        for i in range(2)
    ]
