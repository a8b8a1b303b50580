"""Runs one task at a time in a thread, beside the work of the caller."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

NAME = "background"  # of the thread


class Background:
    """A thread's place: a task begins once the task before it has ended.

    A context: leaving it waits for the last task, so that nothing is left half done.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.wait()
        elif self._thread is not None:  # the error that ends the work is the one to report
            self._thread.join()

    def start(self, task: Callable[[], Any]) -> None:
        """Waits for the task before, raises what that has raised, then runs `task`."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(task,), name=NAME)
        self._thread.start()

    def wait(self) -> None:
        """Returns once no task is running; raises what it has raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, task):
        try:
            task()
        except Exception as error:  # raised where it is waited for
            self._error = error
