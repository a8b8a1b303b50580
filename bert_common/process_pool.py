"""Starts worker processes, hands them their tasks, ends them."""

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
from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.stop_signals import held_back

# What `start` raises where the system has no room for a process, or the server that starts them
# was killed.
_START_ERRORS = (OSError, EOFError, RuntimeError, MemoryError)


class _Worker(NamedTuple):
    process: multiprocessing.process.BaseProcess
    pipe: multiprocessing.connection.Connection


@contextlib.contextmanager
def start_workers(plan, tokenizer, count, remedy, preload=()):
    """Starts worker processes, which end with the context, or with this process.

    Args:
        plan: what the tasks are about, for example a `WorkPlan`.
        tokenizer: what cuts the text.
        count: how many; a single one is this process.
        remedy: what helps where they need too much, for messages.
        preload: names of modules that all of them need, which are imported once.

    Yields:
        A function from a task, that is a module's function of (plan, tokenizer, number), and a
        list of numbers to an iterator over (number, what the task returned), in the order in
        which they are done.

    Raises:
        InputError: what a task raised, a worker that cannot start or died, too little memory.
    """
    if count == 1:
        yield lambda task, numbers: ((n, _do(task, plan, tokenizer, n, remedy)) for n in numbers)
        return
    workers = []
    with tempfile.TemporaryFile() as errors:
        try:
            try:
                with _standard_error_to(errors):
                    _start(workers, count, preload, (plan, tokenizer, remedy))
            except _START_ERRORS as error:
                raise InputError(
                    f"{count} worker processes must start. Received: "
                    f"{_last_line(errors) or repr(error)} at number {len(workers) + 1}; {remedy}"
                ) from None
            yield functools.partial(_run, workers, errors, remedy)
        finally:
            # What they are doing is worth nothing without this process, or after an error.
            with held_back():
                for worker in workers:
                    worker.process.kill()
                for worker in workers:
                    worker.process.join()
                    worker.pipe.close()


def _start(workers, count, preload, arguments):
    """Appends workers; a signal that all processes get is for this one alone."""
    # Never as copies of this process, which may have threads.
    context = multiprocessing.get_context("forkserver")
    # Imported once, shared by all.
    context.set_forkserver_preload([__name__, *preload])
    multiprocessing.resource_tracker.ensure_running()  # before: it lets signals through again
    with held_back():
        for _ in range(count):
            pipe, end = multiprocessing.Pipe()
            with end:
                process = context.Process(target=_work, args=(end, *arguments), daemon=True)
                process.start()
            workers.append(_Worker(process, pipe))


@contextlib.contextmanager
def _standard_error_to(file):
    """Sends what processes that are started in it write to standard error to a file.

    One that cannot start or dies leaves many lines, of which the last one says why.
    """
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _run(workers, errors, remedy, task, numbers):
    """What `start_workers` yields."""
    waiting, idle, busy = collections.deque(numbers), list(workers), {}
    while waiting or busy:
        try:
            while waiting and idle:
                worker = idle.pop()
                worker.pipe.send((task, waiting.popleft()))
                busy[worker.pipe] = worker
            done = [(pipe, *pipe.recv()) for pipe in multiprocessing.connection.wait(busy)]
        except (EOFError, OSError):
            raise InputError(
                f"all {len(workers)} worker processes must stay alive. Received: "
                f"{_reason(workers, errors)}; {remedy}"
            ) from None
        for pipe, number, result, error in done:
            if error is not None:
                raise error
            idle.append(busy.pop(pipe))
            yield number, result


def _reason(workers, errors):
    """Why a worker died."""
    dead = multiprocessing.connection.wait([w.process.sentinel for w in workers], timeout=5)
    codes = [w.process.exitcode for w in workers if w.process.sentinel in dead]
    if signal.SIGKILL in [-(code or 0) for code in codes]:
        return "the end of one, which the system may have killed for want of memory"
    return f"the end of one: {_last_line(errors) or f'exit status {codes}'}"


def _last_line(file):
    text = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode("utf-8", "replace")
    return text.strip().rpartition("\n")[2].strip()


def _work(pipe, plan, tokenizer, remedy):
    """What a worker does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        task, number = pipe.recv()
        result = error = None
        try:
            result = _do(task, plan, tokenizer, number, remedy)
        except Exception as raised:
            if not isinstance(raised, InputError):  # a bug: where it is
                raised.add_note(traceback.format_exc())
            error = raised
        pipe.send((number, result, error))


def _do(task, plan, tokenizer, number, remedy):
    try:
        return task(plan, tokenizer, number)
    except MemoryError as error:
        raise InputError(
            f"there must be enough memory for every worker. Received: {error or 'too little'}; "
            f"{remedy}"
        ) from None


def _end_with_parent():
    # A worker would otherwise finish its task for a parent that was killed.
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
