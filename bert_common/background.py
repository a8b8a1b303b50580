"""Runs one task at a time in a thread, beside the work of the caller."""

import threading

NAME = "background"  # of the thread


class Background:
    """A thread's place: a task begins once the task before it has ended.

    A context: leaving it waits for the last task, so that nothing is left half done.
    """

    def __init__(self):
        self._thread = None
        self._error = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.wait()
        elif self._thread is not None:  # the error that ends the work is the one to report
            self._thread.join()

    def start(self, task):
        """Waits for the task before, then runs `task`, a function without arguments.

        Raises:
            Exception: what the task before has raised.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(task,), name=NAME)
        self._thread.start()

    def wait(self):
        """Returns once no task is running.

        Raises:
            Exception: what the task has raised.
        """
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
