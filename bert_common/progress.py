"""Shows the progress of long work, as a bar on a terminal or else as one line per minute."""

import contextlib
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol, Self, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

# Seconds between two lines when the output is not a terminal.
LINE_INTERVAL = 60

# The rate is averaged over this many lines, so that a slow start is soon forgotten.
RATE_LINES = 10

# Seconds before a bar appears: work that is done within a second needs none.
BAR_DELAY = 1


class Display(Protocol):
    """The interface of a progress display, which is closed at the end of its context."""

    n: int  # the units done, including the ones of an earlier run

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...

    def update(self, n: int = 1) -> Any:
        """Counts `n` more units."""

    def set_postfix(self, values: Mapping[str, Any], refresh: bool = True) -> None:
        """Shows values after the time left; with `refresh` now, otherwise at the next update."""

    def close(self) -> None:
        """Removes the bar, or prints the last line."""


def progress(what: str, total: int, unit: str, done: int = 0, shown: bool = True) -> Display:
    """Opens a progress display on standard error.

    On a terminal it is a bar, which disappears when it is closed. Elsewhere (a batch system's log,
    a pipe) it prints a line every minute, and a last one when work that took longer ends.

    Args:
        what: what is being done, for example "encoding".
        total: the number of units to do.
        unit: the name of a unit, in the plural; "B" for bytes.
        done: the number of units that an earlier run did; the bar counts them, the rate does not.
        shown: whether to show anything; False on all workers but the first.

    Returns:
        The display, open.
    """
    shown = shown and sys.stderr is not None  # None: closed before the program started
    if shown and not sys.stderr.isatty():
        return _Lines(what, total, unit, done)
    return _Bar(
        desc=what, total=total, unit=unit, initial=done, disable=not shown, leave=False,
        delay=BAR_DELAY, miniters=1,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {described}{postfix}",
    )  # fmt: skip


def with_progress(items: Sequence[Item], what: str, unit: str) -> Iterator[Item]:
    """Yields the items of a list and shows how many of them have been processed."""
    with progress(what, len(items), unit) as bar:
        for item in items:
            yield item
            bar.update()


class _Bar(tqdm):
    """A bar with the same description as the lines."""

    monitor_interval = 0  # no thread: with miniters=1 every update checks the clock

    @property
    def format_dict(self):
        values = super().format_dict
        rate = values["rate"] or _divide(self.n - self.initial, values["elapsed"])
        return {**values, "described": _describe(self.n, self.total, self.unit, rate)}


class _Lines:
    """Prints one line per minute."""

    def __init__(self, what, total, unit, done):
        self.what, self.total, self.unit = what, total, unit
        self.n = self.initial = done
        self.postfix = {}
        self.start = monotonic()
        self.history = deque([(self.start, done)], RATE_LINES)  # (time, n) at the last lines
        self.has_lines = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def update(self, n=1):
        self.n += n
        now = monotonic()
        if now - self.history[-1][0] < LINE_INTERVAL:
            return
        since, before = self.history[0]
        self.history.append((now, self.n))
        rate = (self.n - before) / (now - since)
        self._print(_describe(self.n, self.total, self.unit, rate))
        self.has_lines = True

    def set_postfix(self, values, refresh=True):
        self.postfix = values

    def close(self):
        if self.has_lines:
            seconds = monotonic() - self.start
            rate = _format_rate((self.n - self.initial) / seconds, self.unit)
            amount = _format_amount(self.n, self.total, self.unit)
            self._print(f"{amount}, {rate}, ended after {format_duration(seconds)}")
            self.has_lines = False

    def _print(self, description):
        values = "".join(f", {name}={value}" for name, value in self.postfix.items())
        share = _divide(self.n, self.total)
        with contextlib.suppress(OSError):  # a full log must not end the work
            print(f"{self.what}: {share:.0%}, {description}{values}", file=sys.stderr, flush=True)


def _describe(n, total, unit, rate):
    left = f"{format_duration((total - n) / rate)} left" if rate else "time left unknown"
    return f"{_format_amount(n, total, unit)}, {_format_rate(rate, unit)}, {left}"


def _format_amount(n, total, unit):
    if unit == "B":
        return f"{format_bytes(n)} of {format_bytes(total)}"
    return f"{n:,} of {total:,} {unit}"


def _format_rate(rate, unit):
    if unit == "B":
        return f"{format_bytes(rate)}/s"
    return f"{rate:,.1f} {unit}/s" if rate >= 1 or not rate else f"{1 / rate:,.1f} s each"


def _divide(a, b):
    return a / b if b else 0


def format_bytes(count: float) -> str:
    """Formats a number of bytes for people: 12.3 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def format_duration(seconds: float) -> str:
    """Formats a duration for people: 45 s, 12 min, 1 h 20 min, 3 days 4 h."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} day{'s' * (hours >= 48)} {hours % 24} h"
