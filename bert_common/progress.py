"""Shows the progress of long work, as a bar on a terminal or else as one line per minute."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

# Seconds between two lines when the output is not a terminal.
LINE_INTERVAL = 60

# Seconds before a bar appears: work that is done within a second needs none.
BAR_DELAY = 1

_BAR = "{desc}: {percentage:3.0f}%|{bar}| {amount}, {speed}, {left}{postfix}"
_LINE = "{desc}: {percentage:.0f}%, {amount}, {speed}, {left}{postfix}"
_LAST_LINE = "{desc}: {percentage:.0f}%, {amount}, {mean_speed}, ended after {duration}{postfix}"


def progress(what: str, total: int, unit: str, done: int = 0, shown: bool = True) -> "Progress":
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
    options: dict[str, Any] = {"desc": what, "total": total, "unit": unit, "initial": done}
    options |= {"disable": not shown, "leave": False, "miniters": 1}
    if sys.stderr.isatty():
        return Progress(**options, bar_format=_BAR, delay=BAR_DELAY)
    return _Lines(**options, bar_format=_LINE, delay=LINE_INTERVAL, mininterval=LINE_INTERVAL)


def with_progress(items: Sequence[Item], what: str, unit: str) -> Iterator[Item]:
    """Yields the items of a list and shows how many of them have been processed."""
    with progress(what, len(items), unit) as bar:
        for item in items:
            yield item
            bar.update()


class Progress(tqdm):
    """A bar that describes the work in words.

    `update(n)` counts n more units, `n` is their number; `set_postfix` shows values after the time
    left.
    """

    disable: bool
    monitor_interval = 0  # no thread: with miniters=1 every update checks the clock

    @property
    def format_dict(self) -> dict[str, Any]:
        values = super().format_dict
        mean = _divide(self.n - self.initial, values["elapsed"])
        rate = values["rate"] or mean
        left = f"{format_duration((self.total - self.n) / rate)} left" if rate else None
        words = {
            "amount": _format_amount(self.n, self.total, self.unit),
            "speed": _format_rate(rate, self.unit),
            "mean_speed": _format_rate(mean, self.unit),
            "left": left or "time left unknown",
            "duration": format_duration(values["elapsed"]),
        }
        return {**values, **words}


class _Lines(Progress):
    """Prints a line instead of drawing a bar, and a last line if it has printed any."""

    has_lines = False

    def display(self, msg=None, pos=None):
        self.has_lines = True
        with contextlib.suppress(OSError):  # a full log must not end the work
            print(self, file=sys.stderr, flush=True)

    def clear(self, nolock=False):
        """Does nothing: other output, such as a warning, need not make room for a line."""

    def refresh(self, nolock=False, lock_args=None):
        if not nolock:  # tqdm passes True after other output, where a bar is drawn again
            super().refresh(nolock, lock_args)

    def close(self):
        if self.disable:
            return
        if self.has_lines:
            self.bar_format = _LAST_LINE
            self.display()
        self.disable = True
        self._decr_instances(self)  # as tqdm does: the next bar takes this one's place


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
