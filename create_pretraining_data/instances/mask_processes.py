"""Masks records in separate processes, because masking in one Python process uses one core at most.

The processes need only NumPy, so they start in a fraction of a second. Each waits for work at a
pipe and exits when the other end is closed, even if that is because its parent process died.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import queue
import subprocess
import sys
import tempfile
import time
from typing import Any, Self

import numpy as np

from bert_common.cpu import available_cores
from bert_common.errors import InputError
from bert_common.stop_signals import block_signals
from create_pretraining_data.instances.dynamic_masking import draw_masks

# The maximum seconds for a process to start, on an overloaded machine; usually it takes 0.3 s.
STARTING = 120
# The maximum seconds to wait for the exit status of a process that has closed its pipe.
ENDING = 5

_PROGRAM = (
    "import sys; from create_pretraining_data.instances.mask_processes import serve; "
    "serve(int(sys.argv[1]))"
)


def default_count(gpus: int) -> int:
    """Returns the default number of processes for training on a number of GPUs.

    One process can feed several GPUs, but they must never wait for masking. Without GPUs, all
    cores train, so it is 0.
    """
    return min(gpus, available_cores() - 1)


class MaskProcesses:
    """A context manager that starts and ends one or more processes, which draw masks."""

    def __init__(self, count: int) -> None:
        self.count = count
        # Describes why a process ended unexpectedly.
        self.failure: InputError | None = None
        # Pipes to idle processes.
        self._idle: queue.SimpleQueue[multiprocessing.connection.Connection] = queue.SimpleQueue()
        self._pipes: list[multiprocessing.connection.Connection] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._over = False

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile()
        try:
            for _ in range(self.count):
                self._start()
            for pipe in self._pipes:
                if not pipe.poll(STARTING):
                    raise EOFError
                pipe.recv()  # "started"
                self._idle.put(pipe)
        except (OSError, EOFError) as error:
            failure = self._describe(error)
            self.__exit__()
            raise failure from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        self._over = True
        with block_signals():
            for process in self._processes:
                process.kill()
            for process in self._processes:
                process.wait()
        # Pipes and file close when this object is deleted: threads waiting at a pipe see its end.

    def draw_masks(self, *arguments: Any) -> list[np.ndarray]:
        """Runs `dynamic_masking.draw_masks` in the first idle process.

        Any number of threads may call this. After the context has ended, while threads of an input
        pipeline still prefetch records that nobody will read, this process draws the masks.

        Raises:
            ValueError: a process ended unexpectedly (see `failure`), or a record cannot be
                masked.
        """
        pipe = self._idle.get()
        try:
            if self._over:
                return draw_masks(*arguments)
            pipe.send(arguments)
            answer = pipe.recv()
            if isinstance(answer, str):  # a record that cannot be masked; the process stays alive
                raise ValueError(answer)
            return answer
        except (OSError, EOFError) as error:
            if self._over:
                return draw_masks(*arguments)
            self.failure = self.failure or self._describe(error)
            # TensorFlow turns this into an InvalidArgumentError, as for a bad record.
            raise ValueError(str(self.failure)) from None
        finally:
            self._idle.put(pipe)  # so that waiting threads fail too

    def _start(self):
        ours, theirs = multiprocessing.Pipe()
        self._pipes.append(ours)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OPENBLAS_NUM_THREADS": "1",  # OpenBLAS is not used
        }
        # Only this process handles the blocked signals; its children never receive them.
        with theirs, block_signals():
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env=environment,
            )
        self._processes.append(process)

    def _describe(self, error):
        """Returns an InputError that says how a process ended."""
        reason = str(error) or "one did not start in time"
        end = time.monotonic() + ENDING
        statuses: list[int] = []
        while not statuses and time.monotonic() < end:
            time.sleep(0.01)
            statuses = [p.returncode for p in self._processes if p.poll() is not None]
        if statuses:
            reason = f"one ended with exit status {statuses[0]}"
        if statuses and statuses[0] < 0:
            reason = "one was killed, perhaps by the system for lack of memory"
        size = os.fstat(self._errors.fileno()).st_size
        lines = os.pread(self._errors.fileno(), size, 0).decode("utf-8", "replace").split("\n")
        printed = [line.strip() for line in lines if line.strip()]
        return InputError(
            f"all {self.count} processes that draw masks must start and stay alive "
            "(--mask_processes=0 draws them without). Received: "
            f"{': '.join([reason, *printed[-1:]])}"
        )


def serve(descriptor: int) -> None:
    """Draws masks until the pipe is closed; the main function of a process."""
    pipe = multiprocessing.connection.Connection(descriptor)
    with pipe, contextlib.suppress(EOFError, OSError):
        pipe.send("started")
        while True:
            arguments = pipe.recv()
            try:
                answer = draw_masks(*arguments)
            except Exception as error:  # the scan of all records will name the record
                answer = f"{type(error).__name__}: {error}"
            pipe.send(answer)
