"""A contender in a process of its own, which computes when it is its turn."""

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
    """A contender in a separate process, or in several that work together.

    The process builds, compiles and warms up, and then computes only when it is asked, so that
    several contenders can be alive and take turns. It ends when its standard input is closed.

    Args:
        program: the module that it runs, which calls `serve`.
        kind: of the contender, as the program knows it.
        tasks: what the program needs to know, a dict; or a list of them, one for each process. A
            task's "environment" is added to the process's.
    """

    def __init__(self, program, kind, tasks):
        refuse_mixed_cuda()
        self.kind, self.tasks = kind, tasks if isinstance(tasks, list) else [tasks]
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until `close`
        self.processes = [
            subprocess.Popen(
                # -P: the present folder is not on the path.
                [sys.executable, "-P", "-m", program, SERVE, kind, json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                env={**child_environment(), **task.get("environment", {})},
                text=True,
            )
            for task in self.tasks
        ]
        self.seconds = []  # per step, of every run
        self._answers()  # waits until the processes are warm

    def ask(self, question):
        """The answers of the processes to a question; both are what JSON can hold."""
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):  # it has ended, so no answer will come
                print(json.dumps(question), file=process.stdin, flush=True)
        return self._answers()

    def run(self, steps):
        """Computes `steps` steps; the seconds of one, which are recorded with the peak of memory.

        Of processes whose answers have "seconds" and "memory".
        """
        answers = self.ask(steps)
        self.seconds.append(max(answer["seconds"] for answer in answers))
        self.memory = sum(answer["memory"] for answer in answers)
        return self.seconds[-1]

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


def serve(make):
    """Answers the questions of a `Contender` until there are no more; what its process does.

    Args:
        make: a function of the kind and the task that returns a function from questions to answers.
    """
    kind, task = sys.argv[2], json.loads(sys.argv[3])
    # Libraries print: what they print must not come among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer = make(kind, task)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def is_contender():
    """Whether this process was started by a `Contender`."""
    return sys.argv[1:2] == [SERVE]
