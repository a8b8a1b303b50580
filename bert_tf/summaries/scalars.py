"""Computes TensorBoard's scalars from the metrics of the updates between two points.

Shapes: N updates between two points of a curve.
"""

import ctypes
import dataclasses
import functools
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.objective import Objective

# A batch may hold no prediction at all.
SMALLEST_WEIGHT = 1e-9


@dataclasses.dataclass(frozen=True)
class MetricsWindow:
    """The metrics of the updates between two points of the curves.

    Attributes:
        columns: the metrics of `Reporter.steps`, name -> [N].
        timed: how many of the newest updates were timed.
        seconds: the duration of the timed updates.
        batch_size, skipped, weight_norm: as for `Reporter`.
    """

    columns: Mapping[str, np.ndarray]
    timed: int
    seconds: float
    batch_size: int
    skipped: int
    weight_norm: Callable[[], Any] | None

    def mean(self, name: str) -> float | None:
        """Returns the mean over the updates that were not skipped; None if there are none."""
        values = self._not_skipped(name)  # [at most N]
        return values.mean() if len(values) else None

    def ratio(self, numerator: str, denominator: str) -> float | None:
        """Divides one sum by another, both over the updates that were not skipped."""
        below = self._not_skipped(denominator)
        if not len(below):
            return None
        return self._not_skipped(numerator).sum() / max(below.sum(), SMALLEST_WEIGHT)

    def last(self, name: str) -> float | None:
        """Returns the newest update's value; None if there is no such metric."""
        return self.columns[name][-1] if name in self.columns else None

    def per_second(self, amount: float) -> float | None:
        """Divides an amount by the duration of the timed updates; None if there are none."""
        return amount / self.seconds if self.timed else None

    def timed_sum(self, name: str) -> float:
        """Returns the sum over the timed updates."""
        values = self.columns[name]  # [N]
        return values[len(values) - self.timed :].sum()

    def _not_skipped(self, name):
        if name not in self.columns:
            return np.zeros(0)
        return self.columns[name][self.columns["skipped"] == 0]


# TensorBoard's tag -> description, and a function from a window to the value (None for no point).
SCALARS: dict[str, tuple[str, Callable[[MetricsWindow], float | None]]] = {
    "loss/total": ("what training minimizes", lambda w: w.mean("loss")),
    "learning_rate": ("of the newest update", lambda w: w.last("learning_rate")),
    "gradient_norm": ("before clipping, over all devices", lambda w: w.mean("gradient_norm")),
    "weight_norm": ("of all trainable weights", lambda w: w.weight_norm and float(w.weight_norm())),
    "loss_scale": ("what float16 losses are multiplied by", lambda w: w.last("loss_scale")),
    "throughput/examples_per_second": (
        "over all devices",
        lambda w: w.per_second(w.timed * w.batch_size),
    ),
    "throughput/tokens_per_second": (
        "over all devices, without padding",
        lambda w: w.per_second(w.timed_sum("tokens")),
    ),
    "throughput/step_seconds": (
        "of one update, without checkpoints and evaluations",
        lambda w: w.seconds / w.timed if w.timed else None,
    ),
    "throughput/input_wait_seconds": (
        "the part of step_seconds that was spent waiting for the batch",
        lambda w: w.timed_sum("input_seconds") / w.timed if w.timed else None,
    ),
    "data/padding_share": (
        "positions of a batch without a token",
        lambda w: 1 - w.columns["tokens"].sum() / w.columns["positions"].sum(),
    ),
    "health/skipped_steps": (
        "since the run began: loss or gradient was not finite, nothing was updated",
        lambda w: w.skipped,
    ),
    "memory/process_gib": ("of main memory, now", lambda w: process_gib()),
    "memory/process_peak_gib": ("of main memory, the peak", lambda w: process_peak_gib()),
    "memory/device_gib": ("of the fullest GPU, now", lambda w: device_gib("current")),
    "memory/device_peak_gib": ("of the fullest GPU, the peak", lambda w: device_gib("peak")),
}

# A loss's curve -> the sum that is divided by the sum of weights.
CURVE_SUMS = {"loss": "loss", "accuracy": "correct"}


def scalars(objective: Objective) -> dict[str, tuple[str, Callable[[MetricsWindow], float | None]]]:
    """Returns the table `SCALARS`, extended by the curves of an `Objective`."""
    table = dict(SCALARS)
    for name, loss in objective.losses.items():
        for curve, meaning in loss.curves.items():
            ratio = functools.partial(
                MetricsWindow.ratio,
                numerator=f"{name}_{CURVE_SUMS[curve]}",
                denominator=f"{name}_weight",
            )
            tag = f"{curve}/{objective.reported_name(name)}"
            table[tag] = (meaning, ratio)
    for name, share in objective.shares.items():
        if (tag := tag_of(name)) is not None:
            ratio = functools.partial(
                MetricsWindow.ratio, numerator=share.part, denominator=share.whole
            )
            table[tag] = (share.meaning, ratio)
    return table


def tag_of(name: str) -> str | None:
    """Returns TensorBoard's tag for a name in eval_results.txt; None if it has no curve."""
    if name in ("loss", "examples"):
        return {"loss": "loss/total", "examples": "data/examples"}[name]
    if name.startswith("eval_"):  # a downstream task's; shown with the training's accuracy/label
        return f"{name.removeprefix('eval_')}/label"
    kind, _, quantity = name.rpartition("_")
    if quantity == "share":
        return f"data/{name}"
    return f"{quantity}/{kind}" if quantity in ("loss", "accuracy") else None


def process_gib() -> float | None:
    """Returns the process's resident memory in GiB; None if the system does not report it."""
    # The C library keeps freed memory (tens of MB for hours after compiling), which would count as
    # used.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc
        trim(0)
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except OSError:  # not Linux
        return None
    return pages * resource.getpagesize() / 2**30


def process_peak_gib() -> float:
    """Returns the process's peak resident memory in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)  # bytes on macOS, else KiB


def device_gib(kind: str) -> float | None:
    """Returns the fullest GPU's "current" or "peak" memory in GiB; None if there is no GPU."""
    devices = tf.config.list_logical_devices("GPU")
    return max(
        (tf.config.experimental.get_memory_info(d.name)[kind] / 2**30 for d in devices),
        default=None,
    )
