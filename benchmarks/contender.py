"""Runs a contender in a separate process, which computes only on request."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

from benchmarks.common import child_environment, refuse_mixed_cuda

SERVE = "--serve"  # marks the command line of a contender's process


class Contender:
    """A contender in a separate process.

    The process builds, compiles and warms up, and then computes only on request, so that several
    contenders can be alive and take turns. It ends when its standard input is closed.

    Args:
        program: the module that it runs, which calls `serve`.
        kind: the kind of contender, defined by the program.
        task: a dict with the program's input; its "environment" is added to the process's.
    """

    def __init__(self, program, kind, task):
        refuse_mixed_cuda()
        self.kind, self.task = kind, task
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until `close`
        self.process = subprocess.Popen(
            # -P keeps the current folder off sys.path.
            [sys.executable, "-P", "-m", program, SERVE, kind, json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**child_environment(), **task.get("environment", {})},
            text=True,
        )
        self.seconds = []  # per step, of every run
        self._answer()  # waits until the process is warm

    def ask(self, question):
        """Returns the process's answer to a question; both must be JSON-serializable."""
        with contextlib.suppress(BrokenPipeError):  # if it has ended, `_answer` raises
            print(json.dumps(question), file=self.process.stdin, flush=True)
        return self._answer()

    def run(self, steps):
        """Computes `steps` steps; returns the seconds per step, and records them and the memory.

        The process's answer must have "seconds" and "memory", the peak memory.
        """
        answer = self.ask(steps)
        self.seconds.append(answer["seconds"])
        self.memory = answer["memory"]
        return self.seconds[-1]

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            message = self.log.read()
            self.close()
            raise ContenderFailed(message, self.process.returncode)
        return json.loads(line)

    def close(self):
        """Ends the process, which frees its memory."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.log.close()


class ContenderFailed(Exception):
    """Raised when a contender's process ends unexpectedly.

    Args:
        message: its output, the end of which is shown.
        status: the exit status of its process.
    """

    def __init__(self, message, status):
        super().__init__(message[-2000:])
        # A process that was killed could not print a reason.
        lines = message.strip().splitlines() if status >= 0 else []
        self.last_line = lines[-1] if lines else f"exit status {status}"
        # TensorFlow ran out of memory, or Linux killed the process.
        self.out_of_memory = "RESOURCE_EXHAUSTED" in message or status == -signal.SIGKILL


def serve(make):
    """Answers the questions of a `Contender` in its process until there are no more.

    Args:
        make: a function of the kind and the task that returns a function from questions to answers.
    """
    kind, task = sys.argv[2], json.loads(sys.argv[3])
    # Libraries may print to standard output, which must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer = make(kind, task)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def is_contender():
    """Returns True if this process was started by a `Contender`."""
    return sys.argv[1:2] == [SERVE]
