"""Runs tasks in worker processes, which end with this process."""

import collections
import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import multiprocessing.resource_tracker
import os
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bert_common.errors import InputError, MachineError
from bert_common.startup import redirect_standard_error
from bert_common.stop_signals import block_signals

# A function that calls a task with each of some numbers and yields (number, result).
Run = Callable[[Callable[..., Any], Sequence[int]], Iterator[tuple[int, Any]]]

# The errors that `Process.start` raises if the system cannot create another process, or if the
# server that forks them was killed.
_START_ERRORS = (OSError, EOFError, RuntimeError, MemoryError)


class _Worker(NamedTuple):
    process: multiprocessing.process.BaseProcess
    pipe: multiprocessing.connection.Connection


@contextlib.contextmanager
def start_workers(
    shared: tuple[Any, ...], count: int, remedy: str, preload: Sequence[str] = ()
) -> Iterator[Run]:
    """Starts worker processes, which end with the context or with this process.

    Args:
        shared: the arguments that every task gets, for example a `WorkPlan` and a tokenizer.
        count: the number of processes; 1 runs the tasks in this process.
        remedy: advice for messages about too little memory or too many processes.
        preload: names of modules that every worker needs, to be imported only once.

    Yields:
        A function `run(task, numbers)`: calls the module-level function `task(*shared, number)`
        for each number; returns an iterator over (number, result) in order of completion.

    Raises:
        InputError: a task raised it.
        MachineError: a worker cannot start or has died, or memory ran out.
    """
    if count == 1:
        yield lambda task, numbers: ((n, _call(task, shared, n, remedy)) for n in numbers)
        return
    workers: list[_Worker] = []
    with tempfile.TemporaryFile() as errors:
        try:
            try:
                # A worker that cannot start, or dies, prints many lines; the last gives the reason.
                with redirect_standard_error(errors):
                    _start(workers, count, preload, (shared, remedy))
            except _START_ERRORS as error:
                raise MachineError(
                    f"{count} worker processes must start. Received: "
                    f"{_last_line(errors) or repr(error)} at number {len(workers) + 1}; {remedy}"
                ) from None
            yield functools.partial(_run, workers, errors, remedy)
        finally:
            # Killed, because nobody needs their work after an error or without this process.
            with block_signals():
                for worker in workers:
                    worker.process.kill()
                for worker in workers:
                    worker.process.join()
                    worker.pipe.close()


def _start(workers, count, preload, arguments):
    """Appends new workers to a list; they ignore signals, which this process handles."""
    # Workers are never forked from this process, because it may have threads.
    context = multiprocessing.get_context("forkserver")
    # Imported once and shared by all workers.
    context.set_forkserver_preload([__name__, *preload])
    multiprocessing.resource_tracker.ensure_running()  # first, because it unblocks the signals
    with block_signals():
        for _ in range(count):
            pipe, end = multiprocessing.Pipe()
            with end:
                process = context.Process(target=_work, args=(end, *arguments), daemon=True)
                process.start()
            workers.append(_Worker(process, pipe))


def _run(workers, errors, remedy, task, numbers):
    """Distributes the numbers to the workers; yields (number, result) in order of completion."""
    waiting, idle = collections.deque(numbers), list(workers)
    busy: dict[multiprocessing.connection.Connection, _Worker] = {}
    while waiting or busy:
        try:
            while waiting and idle:
                worker = idle.pop()
                worker.pipe.send((task, waiting.popleft()))
                busy[worker.pipe] = worker
            ready: list[Any] = multiprocessing.connection.wait(busy)
            done = [(pipe, *pipe.recv()) for pipe in ready]
        except (EOFError, OSError):
            raise MachineError(
                f"all {len(workers)} worker processes must stay alive. Received: "
                f"{_describe_death(workers, errors)}; {remedy}"
            ) from None
        for pipe, number, result, error in done:
            if error is not None:
                raise error
            idle.append(busy.pop(pipe))
            yield number, result


def _describe_death(workers, errors):
    """Describes why a worker died."""
    dead = multiprocessing.connection.wait([w.process.sentinel for w in workers], timeout=5)
    codes = [w.process.exitcode for w in workers if w.process.sentinel in dead]
    if signal.SIGKILL in [-(code or 0) for code in codes]:
        return "one was killed, perhaps by the system for lack of memory"
    return f"one ended: {_last_line(errors) or f'exit status {codes}'}"


def _last_line(file):
    text = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode("utf-8", "replace")
    return text.strip().rpartition("\n")[2].strip()


def _work(pipe, shared, remedy):
    """The main function of a worker: runs tasks until it is killed."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    while True:
        task, number = pipe.recv()
        result = error = None
        try:
            result = _call(task, shared, number, remedy)
        except Exception as raised:
            if not isinstance(raised, InputError):  # a bug, whose traceback is needed
                raised.add_note(traceback.format_exc())
            error = raised
        pipe.send((number, result, error))


def _call(task, shared, number, remedy):
    try:
        return task(*shared, number)
    except MemoryError as error:
        raise MachineError(
            f"every worker must have enough memory. Received: {error or 'too little'}; {remedy}"
        ) from None


def _exit_with_parent():
    # Otherwise a worker would finish its task after its parent was killed.
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a worker
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
