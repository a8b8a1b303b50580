"""Masks records in processes of their own, as masking in Python keeps one core busy at most.

The processes need NumPy alone, so they start in a fraction of a second. Each waits for work at a
pipe and ends when the other end is closed, also by the death of the process that started it.
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

# A process has started after 0.3 s; on a machine with too much to do it may take this many seconds.
STARTING = 120
# Seconds that a process may take to end after it has closed its pipe, until the reason is known.
ENDING = 5

_PROGRAM = (
    "import sys; from create_pretraining_data.instances.mask_processes import serve; "
    "serve(int(sys.argv[1]))"
)


def default_count(gpus: int) -> int:
    """Chooses the number of processes for training on some GPUs of a machine.

    One feeds several GPUs, but masking must never be what they wait for. On a CPU all cores train.
    """
    return min(gpus, available_cores() - 1)


class MaskProcesses:
    """Processes, 1 at least, that draw masks; a context, which starts and ends them."""

    def __init__(self, count: int) -> None:
        self.count = count
        # That of a process that has ended by itself.
        self.failure: InputError | None = None
        # Pipes to processes without work.
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
                pipe.recv()  # that it has started
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
        # Pipes and file are closed with this object: threads that wait at a pipe find its end.

    def draw_masks(self, *arguments: Any) -> list[np.ndarray]:
        """Runs `dynamic_masking.draw_masks` in the first process that has no work.

        Any number of threads may call it. After the context, when threads of an input pipeline
        still prefetch what nobody will read, this process draws the masks.

        Raises:
            ValueError: a process has ended by itself, and `failure` says how; or a record cannot
                be masked.
        """
        pipe = self._idle.get()
        try:
            if self._over:
                return draw_masks(*arguments)
            pipe.send(arguments)
            answer = pipe.recv()
            if isinstance(answer, str):  # a record that cannot be masked; the process lives on
                raise ValueError(answer)
            return answer
        except (OSError, EOFError) as error:
            if self._over:
                return draw_masks(*arguments)
            self.failure = self.failure or self._describe(error)
            # TensorFlow makes an InvalidArgumentError of it, as for a bad record.
            raise ValueError(str(self.failure)) from None
        finally:
            self._idle.put(pipe)  # a thread that waits must find out as well

    def _start(self):
        ours, theirs = multiprocessing.Pipe()
        self._pipes.append(ours)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OPENBLAS_NUM_THREADS": "1",  # none of its routines is used
        }
        # They never receive the signals, which this process handles.
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
        """An InputError that says how a process has ended."""
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
    """The main function of a process: draws masks until the pipe is closed."""
    pipe = multiprocessing.connection.Connection(descriptor)
    with pipe, contextlib.suppress(EOFError, OSError):
        pipe.send("started")
        while True:
            arguments = pipe.recv()
            try:
                answer = draw_masks(*arguments)
            except Exception as error:  # the scan of all records will say which one
                answer = f"{type(error).__name__}: {error}"
            pipe.send(answer)
