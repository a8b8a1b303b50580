"""Counts a training's time over all its starts, to limit it and set the learning rate."""

from time import monotonic

import tensorflow as tf


class TimeBudget:
    """The time that a training may take, including its earlier starts.

    Create it in the strategy's scope.

    Attributes:
        before: the seconds that earlier starts took.
        share: the spent share of the time, 0 or more, the same on all workers.
        variable: the share, at most 1, as a float32 variable that the schedule reads.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.before = 0.0
        self.share = 0.0
        self.variable = tf.Variable(0.0, trainable=False, name="spent_share")
        self._start: float | None = None

    def begin(self) -> None:
        """Starts the clock."""
        self._start = monotonic()

    @property
    def spent(self) -> float:
        """The seconds spent, by this worker's clock."""
        return self.before + (0.0 if self._start is None else monotonic() - self._start)

    def resume(self, seconds: float) -> None:
        """Sets the seconds that earlier starts spent."""
        self.before = seconds
        self.set_share(seconds / self.seconds)

    def set_share(self, share: float) -> None:
        """Sets the share on which all workers agree."""
        self.share = share
        self.variable.assign(min(share, 1.0))

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.share >= 1.0
