"""Gives tasks to processes of their own, and goes on in others where those die or hang."""

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
from pathlib import Path

from bert_common.progress import progress
from run_scripts.tools.check_devices.worker import ANSWERS, SHOWN_CHARACTERS

# What starts a process that works on the tasks of a file.
COMMAND = (sys.executable, "-m", "run_scripts.tools.check_devices.worker")

# A process that answers nothing for so long hangs; the longest wait is for BERT-base to be
# compiled on a busy machine.
SILENCE_SECONDS = 300


def run_groups(groups, title):
    """Does groups of tasks at the same time, those of a group one after the other.

    Args:
        groups: a list of (tasks, environments), as `run_group` takes them.
        title: of the progress bar.

    Returns:
        A list of (task, answer).
    """
    answers = [[] for _ in groups]
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
        for (tasks, _), found in zip(groups, answers, strict=True)
        for pair in zip(tasks, found, strict=True)
    ]


def run_group(tasks, environments):
    """Does the tasks one after the other in new processes; in others, where those die.

    Args:
        tasks: dicts; "kind" is a key of `worker.KINDS`.
        environments: a function that returns the variables to set in each of the processes;
            all of these do every task, together.

    Yields:
        An answer to each task: a dict with "result", which is "ok", "wrong: ..." or
        "failed: ...", and numbers. None whenever the next one is not there yet.
    """
    done = 0
    while done < len(tasks):
        for answer in _attempt(tasks[done:], environments()):
            done += answer is not None
            yield answer


def _attempt(tasks, environments):
    """As `run_group`, until the processes can do no more; one answer at least."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"tasks{i}" for i in range(len(environments))]
        processes = []
        try:
            for path, environment in zip(paths, environments, strict=True):
                processes.append(_start(path, tasks, environment))
            given, heard, last = 0, 0, time.monotonic()
            while given < len(tasks):
                # In this order: what a process wrote before its end is read.
                ended = [process.poll() is not None for process in processes]
                answers = [_read_answers(path) for path in paths]
                if sum(map(len, answers)) > heard:
                    heard, last = sum(map(len, answers)), time.monotonic()
                while given < min(map(len, answers)):
                    answer = _worst([each[given] for each in answers])
                    given += 1
                    yield answer
                    if len(processes) > 1 and answer["result"].startswith("failed"):
                        return  # sums that only some of them added up would be in the way
                if given == len(tasks):
                    return
                dead = [i for i, each in enumerate(answers) if ended[i] and len(each) < len(tasks)]
                if dead or time.monotonic() - last > SILENCE_SECONDS:
                    known = [each[given] for each in answers if len(each) > given]
                    known.append({"result": f"failed: {_reason(dead, processes, paths)}"})
                    yield _worst(known)
                    return
                yield None
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _start(path, tasks, environment):
    """Starts a process that does the tasks."""
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
    """The answers that a process has written so far."""
    try:
        text = path.with_suffix(ANSWERS).read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _worst(answers):
    """The first that is not "ok", else the one with the largest difference."""
    bad = [answer for answer in answers if answer["result"] != "ok"]
    return bad[0] if bad else max(answers, key=lambda answer: answer.get("difference", 0))


def _reason(dead, processes, paths):
    """Why there is no answer."""
    if not dead:
        return f"no answer for {SILENCE_SECONDS} s"
    status = processes[dead[0]].returncode
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    text = paths[dead[0]].with_suffix(".err").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    # The line of a check in C++ that failed, with a stack below.
    fatal = [line for line in lines if re.match(r"F\d{4} |F\d{4}-", line)]
    return f"the process ended with {name}: {(fatal or lines)[-1].strip()}"[:SHOWN_CHARACTERS]


def worker_environments(gpus):
    """What makes two processes on this machine the workers of one run.

    Args:
        gpus: with two at least, each worker has one of its own; else the CPU.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
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
