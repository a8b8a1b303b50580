"""Runs one task at a time in a thread, beside the work of the caller."""

import concurrent.futures
from collections.abc import Callable
from typing import Any, Self

NAME = "background"  # of the thread


class Background:
    """A thread's place: a task begins once the task before it has ended.

    A context: leaving it waits for the last task, so that nothing is left half done.
    """

    def __init__(self) -> None:
        self._thread = concurrent.futures.ThreadPoolExecutor(1, NAME)
        self._task: concurrent.futures.Future[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self._thread.shutdown()
        if kind is None:  # else the error that ends the work is the one to report
            self.wait()

    def start(self, task: Callable[[], Any]) -> None:
        """Waits for the task before, raises what that has raised, then runs `task`."""
        self.wait()
        self._task = self._thread.submit(task)

    def wait(self) -> None:
        """Returns once no task is running; raises what it has raised."""
        task, self._task = self._task, None
        if task is not None:
            task.result()
