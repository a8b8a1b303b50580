"""Starts several worker processes on this machine, as TF_CONFIG would over several machines."""

import contextlib
import json
import socket
import subprocess
import sys
import time

from tests.support.paths import ROOT, environment_with

# For everything: importing TensorFlow takes most of it; all is ten times as slow on a busy machine.
DEADLINE = 600


class Worker:
    """A `subprocess.Popen`, `process`, with its output."""

    def __init__(self, command, environment, folder, index):
        self._out, self._err = (folder / f"worker{index}.{name}" for name in ("out", "err"))
        with open(self._out, "w") as out, open(self._err, "w") as err:
            files = {"stdout": out, "stderr": err}
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, **files)

    @property
    def stdout(self):
        return self._out.read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self):
        return self._err.read_text(encoding="utf-8", errors="replace")

    def tail(self):
        """The end of what it wrote, for a failed test."""
        status = self.process.poll()
        return f"status {status}\n{self.stdout[-1500:]}\n-- stderr\n{self.stderr[-3000:]}"


def free_ports(count):
    """Free ports, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def start_workers(program, folder, count=2, environments=()):
    """Starts the workers; kills what is left of them at the end.

    Args:
        program: code, the same for all; or the arguments after "python", a list for all or a
            function of the worker's index that returns one.
        folder: a `Path` where their output goes.
        count: how many.
        environments: for each worker a dict of variables to set beside TF_CONFIG; may be shorter.

    Yields:
        A list of `Worker`.
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(program, str):  # a file, since AutoGraph reads the source
        path = folder / "program.py"
        path.write_text(program, encoding="utf-8")
        program = [path]
    workers = []
    try:
        for index in range(count):
            task = {"type": "worker", "index": index}
            arguments = map(str, program(index) if callable(program) else program)
            variables = {
                "CUDA_VISIBLE_DEVICES": "",
                "KERAS_BACKEND": "tensorflow",
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task}),
                **(environments[index] if index < len(environments) else {}),
            }
            command = [sys.executable, *arguments]
            workers.append(Worker(command, environment_with(**variables), folder, index))
        yield workers
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait()


def wait_for(workers, status=0):
    """Waits for the end of all the workers, and asserts their exit status."""
    end = time.monotonic() + DEADLINE
    for worker in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(max(0, end - time.monotonic()))
    statuses = [worker.process.poll() for worker in workers]
    assert statuses == [status] * len(workers), _tails(workers)


def _tails(workers):
    return "\n".join(f"==== worker {i}: {worker.tail()}" for i, worker in enumerate(workers))
