"""Runs one task at a time in a background thread."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

NAME = "background"  # the thread's name


class Background:
    """Runs tasks in a thread, each once the previous one has ended.

    Leaving the context waits for the last task, so that nothing is left half done.
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
        elif self._thread is not None:  # the caller's own error is the one to report
            self._thread.join()

    @property
    def failed(self) -> bool:
        """Whether a task failed whose error `wait` has not raised yet."""
        return self._error is not None

    def start(self, task: Callable[[], Any]) -> None:
        """Waits for the previous task, raises its error if it failed, then starts `task`."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(task,), name=NAME)
        self._thread.start()

    def wait(self) -> None:
        """Waits until no task is running; raises the task's error if it failed."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, task):
        try:
            task()
        except Exception as error:  # `wait` raises it
            self._error = error
