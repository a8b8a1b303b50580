"""Starts the process of a contender, and has it compute when it is its turn."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import ENVIRONMENT, ROOT, refuse_mixed_cuda

PROGRAM = "benchmarks.speed.contenders"  # what the process runs


class Contender:
    """A contender in a separate process, or in several that work together.

    The process builds, compiles and warms up, and then computes only when `run` is called, so that
    several contenders can be alive and take turns. It ends when its standard input is closed.

    Args:
        kind: a key of `speed.contenders.KINDS`.
        tasks: the task, see `speed.contenders`; or a list of tasks, one for each process.
        checkout: the folder of another checkout of this project, to measure its code.
    """

    def __init__(self, kind, tasks, checkout=None):
        refuse_mixed_cuda()
        self.tasks = tasks if isinstance(tasks, list) else [tasks]
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until `close`
        # Another checkout's packages come first; one without these programs is measured by ours.
        folders = [Path(checkout).resolve(), ROOT] if checkout else [ROOT]
        path = os.pathsep.join(map(str, folders))
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
        self.processes = [
            subprocess.Popen(
                # -P: the present folder is not on the path.
                [sys.executable, "-P", "-m", PROGRAM, kind, json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                env={**environment, **task.get("environment", {})},
                text=True,
            )
            for task in self.tasks
        ]
        self.seconds = []  # per step, of every run
        self._answers()  # waits until the processes are warm

    def run(self, steps):
        """Computes `steps` steps; records the seconds per step, and the peak of memory so far."""
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):  # it has ended, so no answer will come
                print(steps, file=process.stdin, flush=True)
        answers = self._answers()
        self.seconds.append(max(answer["seconds"] for answer in answers))
        self.memory = sum(answer["memory"] for answer in answers)

    def _answers(self):
        lines = [process.stdout.readline() for process in self.processes]
        if not all(lines):
            self.log.seek(0)
            message = self.log.read()
            self.close()
            raise ContenderFailed(message, [process.returncode for process in self.processes])
        return [json.loads(line) for line in lines]

    def close(self):
        """Ends the processes, which frees their memory."""
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
        for process in self.processes:
            process.wait()
        self.log.close()


class ContenderFailed(Exception):
    """A contender's process ended by itself.

    Args:
        message: what it printed, of which the end is shown.
        statuses: the exit status of each of its processes.
    """

    def __init__(self, message, statuses):
        super().__init__(message[-2000:])
        killed = min(statuses) < 0  # so it could not print a reason
        lines = [] if killed else message.strip().splitlines()
        self.last_line = lines[-1] if lines else f"exit status {statuses}"
        # TensorFlow's error, or Linux killed the process.
        self.out_of_memory = "RESOURCE_EXHAUSTED" in message or -signal.SIGKILL in statuses
