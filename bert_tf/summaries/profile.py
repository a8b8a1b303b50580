"""Traces chosen updates for TensorBoard's profiler."""

import os
from typing import Any, Self

import tensorflow as tf


class Profile:
    """Traces the updates from `first`, counted from 1, to `last` for TensorBoard's profiler.

    Nothing is traced if both are 0. The traces are written to plugins/profile.
    """

    def __init__(self, directory: str | os.PathLike[str], first: int, last: int) -> None:
        self.directory = str(directory)
        self.first = first
        self.last = last
        self.running = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.running:  # training ended before `last`
            self._stop()

    def before(self, step: int) -> None:
        """Starts the trace if due; call it before update `step`, the first of a loop."""
        if not self.running and self.first <= step <= self.last:
            tf.test.experimental.sync_devices()  # earlier updates must not be traced
            tf.profiler.experimental.start(self.directory)
            self.running = True

    def after(self, step: int) -> None:
        """Ends the trace if due; call it after update `step`, the last of a loop."""
        if self.running and step >= self.last:
            self._stop()

    def _stop(self):
        tf.test.experimental.sync_devices()
        tf.profiler.experimental.stop()
        self.running = False
