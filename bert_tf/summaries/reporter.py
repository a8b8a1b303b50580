"""Training's progress with its TensorBoard curves.

Shapes: n updates of one call of the compiled loop, N updates between two points of a curve.
"""

import dataclasses
import math
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_common.progress import progress
from bert_tf.summaries.event_files import (
    EVALUATION_RUN,
    drop_later_events,
    event_files,
    rewrite_events,
)
from bert_tf.summaries.memory_use import device_gib, process_gib, process_peak_gib

# Seconds between two looks at the newest loss for the progress: each one waits for the device.
LOOK_INTERVAL = 2.0

# Calls whose time says nothing: the first compiles the steps.
UNTIMED_CALLS = 1

# A batch may hold no prediction at all.
SMALLEST_WEIGHT = 1e-9


class Illustrations(NamedTuple):
    """What TensorBoard shows of an evaluation beside its numbers.

    Attributes:
        texts: tag -> Markdown.
        images: tag -> [height, width, 3] uint8.
    """

    texts: dict
    images: dict


NO_ILLUSTRATIONS = Illustrations({}, {})


@dataclasses.dataclass(frozen=True)
class Window:
    """The updates between two points of the curves.

    Attributes:
        columns: the metrics of `Reporter.steps`, name -> [N].
        timed: how many of the newest updates the clock has seen.
        seconds: how long those took.
        batch_size: examples of an update.
        skipped: updates left out since the run began.
        weight_norm: a function without arguments, or None.
    """

    columns: dict
    timed: int
    seconds: float
    batch_size: int
    skipped: int
    weight_norm: Callable | None

    def mean(self, name):
        """The mean over the updates that were made."""
        values = self._made(name)  # [at most N]
        return values.mean() if len(values) else None

    def ratio(self, numerator, denominator):
        """One sum over another, both over the updates that were made."""
        below = self._made(denominator)
        if not len(below):
            return None
        return self._made(numerator).sum() / max(below.sum(), SMALLEST_WEIGHT)

    def last(self, name):
        """The newest update's value."""
        return self.columns[name][-1] if name in self.columns else None

    def per_second(self, amount):
        """A rate over the updates that the clock has seen."""
        return amount / self.seconds if self.timed else None

    def timed_sum(self, name):
        """The sum over the updates that the clock has seen."""
        values = self.columns[name]  # [N]
        return values[len(values) - self.timed :].sum()

    def _made(self, name):
        if name not in self.columns:
            return np.zeros(0)
        return self.columns[name][self.columns["skipped"] == 0]


# TensorBoard's names, what they mean, how they follow from a window; None for no point.
SCALARS = {
    "loss/total": ("what training minimizes", lambda w: w.mean("loss")),
    "loss/masked_lm": (
        "mean over the masked words",
        lambda w: w.ratio("masked_lm_loss", "masked_lm_weight"),
    ),
    "loss/{sentence}": (
        "mean over the sentence pairs",
        lambda w: w.ratio("next_sentence_loss", "next_sentence_weight"),
    ),
    "accuracy/masked_lm": (
        "share of the masked words found",
        lambda w: w.ratio("masked_lm_correct", "masked_lm_weight"),
    ),
    "accuracy/{sentence}": (
        "share of the sentence pairs told right",
        lambda w: w.ratio("next_sentence_correct", "next_sentence_weight"),
    ),
    "accuracy/label": (
        "share of the labels told right",
        lambda w: w.ratio("label_correct", "label_weight"),
    ),
    "learning_rate": ("of the newest update", lambda w: w.last("learning_rate")),
    "gradient_norm": ("before clipping, over all devices", lambda w: w.mean("gradient_norm")),
    "weight_norm": (
        "of all trainable weights",
        lambda w: w.weight_norm and float(w.weight_norm()),
    ),
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
        "of one update, checkpoints and evaluations left out",
        lambda w: w.seconds / w.timed if w.timed else None,
    ),
    "throughput/input_wait_seconds": (
        "the part of step_seconds that was spent waiting for the batch",
        lambda w: w.timed_sum("input_seconds") / w.timed if w.timed else None,
    ),
    "data/padding_share": (
        "places of a batch without a token",
        lambda w: 1 - w.columns["tokens"].sum() / w.columns["positions"].sum(),
    ),
    "health/skipped_steps": (
        "since the run began: loss or gradient was not finite, nothing was updated",
        lambda w: w.skipped,
    ),
    "memory/process_gib": ("of main memory, now", lambda w: process_gib()),
    "memory/process_peak_gib": ("of main memory, at most so far", lambda w: process_peak_gib()),
    "memory/device_gib": ("of the fullest GPU, now", lambda w: device_gib("current")),
    "memory/device_peak_gib": (
        "of the fullest GPU, at most so far",
        lambda w: device_gib("peak"),
    ),
}


class Reporter:
    """Writes TensorBoard scalars by global step, shows the progress with the time left.

    What an earlier run left in the directory's curves after `start_step` is removed.

    Args:
        directory: where the event file goes.
        start_step: updates made before.
        num_train_steps: the last step.
        batch_size: examples of a step, for examples/s.
        summary_steps: updates between two points of a curve.
        sentence_name: "next_sentence" or "sentence_order".
        writes: whether there are files and progress; off on all workers but the first.
        skipped_before: updates left out before `start_step`.
        weight_norm: a function without arguments, called once for every point.

    Attributes:
        skipped: updates left out since the run began, as far as the metrics were looked at.
    """

    def __init__(
        self,
        directory,
        start_step,
        num_train_steps,
        batch_size,
        summary_steps,
        sentence_name,
        writes=True,
        skipped_before=0,
        weight_norm=None,
    ):
        self.directory = str(directory)
        self.writes = writes
        if writes:
            drop_later_events(self.directory, start_step)
        self._begin()
        self.num_train_steps = num_train_steps
        self.bar = None  # opened with the clock: the time left does not follow from compiling
        self.batch_size = batch_size
        self.summary_steps = summary_steps
        self.sentence_name = sentence_name
        self.skipped = skipped_before
        self.weight_norm = weight_norm
        self.waiting = []  # metrics that are still the device's
        self.seen = []  # those of the same window that were looked at, as arrays
        self.untimed_calls = UNTIMED_CALLS
        self.timed_steps = 0
        self.window_start = self.last_look = time.perf_counter()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()
        if self.bar is not None:
            self.bar.close()

    def _begin(self):
        """Opens an event file."""
        before = set(event_files(self.directory))
        self.writer = self._open(self.directory)
        self.evaluation_writer = None
        self.files = [path for path in event_files(self.directory) if path not in before]

    def _end(self):
        self.writer.close()
        if self.evaluation_writer is not None:
            self.evaluation_writer.close()

    def is_lost(self):
        """Whether somebody has removed or renamed the event file that is being written."""
        return not all(map(os.path.exists, self.files))

    def begin_again(self):
        """Goes on in a new event file."""
        self._end()
        self._begin()

    def steps(self, last_step, metrics):
        """Takes the metrics of the updates up to number `last_step`.

        Args:
            last_step: the number of the last of them.
            metrics: a dict name -> [n], left on the device as long as no line or point needs
                it: the sums of `loss_sums`, "loss", "gradient_norm", "learning_rate",
                "tokens" (without padding), "skipped" (1 where nothing was updated: the update
                is left out of every mean), "input_seconds", and "loss_scale" if there is one.
        """
        self.waiting.append(metrics)
        count = len(metrics["loss"])
        if self.untimed_calls:
            self.untimed_calls -= 1
            self._look()
            self.restart_clock()
            if not self.untimed_calls:
                total, shown = self.num_train_steps, self.writes
                self.bar = progress("training", total, "steps", done=last_step, shown=shown)
        else:
            self.timed_steps += count
            if time.perf_counter() - self.last_look > LOOK_INTERVAL:
                self._look()
                self._show()
            self.bar.update(count)
        if last_step % self.summary_steps == 0:
            self.flush(last_step)

    def flush(self, step):
        """Writes the curves' next point, of all updates since the last one."""
        self._look()
        if not self.seen:
            return
        seconds = self._seconds()
        self._show()
        window = Window(
            columns={
                name: np.concatenate([metrics[name] for metrics in self.seen])  # [N]
                for name in self.seen[0]
            },
            timed=self.timed_steps,
            seconds=seconds,
            batch_size=self.batch_size,
            skipped=self.skipped,
            weight_norm=self.weight_norm,
        )
        with self.writer.as_default(step=step):
            for name, (meaning, function) in SCALARS.items():
                value = function(window)
                if value is not None:
                    name = name.format(sentence=self.sentence_name)
                    tf.summary.scalar(name, value, description=meaning)
        self.writer.flush()
        self.seen = []
        self.restart_clock()

    def restart_clock(self):
        """Leaves out of the rates what is no training, such as writing a checkpoint.

        To be called right after `flush`: the updates since then lose their time.
        """
        self.timed_steps = 0
        self.window_start = time.perf_counter()

    def texts(self, texts, step):
        """Writes Markdown for TensorBoard's page of texts: a dict name -> text."""
        with self.writer.as_default(step=step):
            for name, text in texts.items():
                tf.summary.text(name, text)
        self.writer.flush()

    def evaluation(self, step, results, illustrations=NO_ILLUSTRATIONS):
        """Writes an evaluation's points, to a run named "eval".

        Args:
            step: updates made before it.
            results: what `Evaluator.run` returned.
            illustrations: what `Evaluator.illustrations` returned.
        """
        if self.evaluation_writer is None:
            folder = os.path.join(self.directory, EVALUATION_RUN)
            if self.writes:  # the same step may have been evaluated before a resume
                rewrite_events(folder, lambda earlier: earlier < step)
            self.evaluation_writer = self._open(folder)
        _write_results(self.evaluation_writer, step, results, illustrations)

    def _open(self, folder):
        if self.writes:
            return tf.summary.create_file_writer(folder)
        return tf.summary.create_noop_writer()

    def _look(self):
        """Fetches the metrics that wait, and with them waits for the device."""
        for metrics in self.waiting:
            arrays = {name: np.asarray(value, np.float64) for name, value in metrics.items()}
            self.skipped += int(arrays["skipped"].sum())
            self.seen.append(arrays)
        self.waiting = []

    def _show(self):
        """Renews the numbers beside the progress."""
        if self.bar is None:
            return
        losses = np.concatenate([metrics["loss"][metrics["skipped"] == 0] for metrics in self.seen])
        rate = self.seen[-1]["learning_rate"][-1]
        shown = {"loss": f"{losses[-1] if len(losses) else math.nan:.3f}", "lr": f"{rate:.2e}"}
        if self.timed_steps:
            examples = self.timed_steps * self.batch_size
            shown["examples_s"] = f"{examples / self._seconds():.1f}"
        if self.skipped:
            shown["skipped"] = self.skipped
        self.bar.set_postfix(shown, refresh=False)
        self.last_look = time.perf_counter()

    def _seconds(self):
        return max(time.perf_counter() - self.window_start, 1e-9)


def write_evaluation(directory, results, step, illustrations=NO_ILLUSTRATIONS):
    """Adds an evaluation's numbers to TensorBoard, in a run of their own named "eval".

    Args:
        directory: that of the training's curves.
        results: what `Evaluator.run` returned.
        step: updates made before it; an earlier evaluation of the same step is replaced.
        illustrations: what `Evaluator.illustrations` returned.
    """
    folder = os.path.join(directory, EVALUATION_RUN)
    rewrite_events(folder, lambda earlier: earlier != step)
    writer = tf.summary.create_file_writer(folder)
    _write_results(writer, step, results, illustrations)
    writer.close()


def _write_results(writer, step, results, illustrations):
    """Writes results under the training curves' tags, so that one chart shows both."""
    with writer.as_default(step=step):
        for name, value in results.items():
            if (tag := _tag(name)) is not None:
                tf.summary.scalar(tag, value)
        for name, text in illustrations.texts.items():
            tf.summary.text(name, text)
        for name, image in illustrations.images.items():
            tf.summary.image(name, image[None])  # [height, width, 3] -> [1, height, width, 3]
    writer.flush()


def _tag(name):
    """eval_results.txt's name -> TensorBoard's; None for what has no curve."""
    if name in ("loss", "examples"):
        return {"loss": "loss/total", "examples": "data/examples"}[name]
    if name.startswith("eval_"):  # of a downstream task, each measure beside the training's
        return f"{name.removeprefix('eval_')}/label"
    kind, _, quantity = name.rpartition("_")
    return f"{quantity}/{kind}" if quantity in ("loss", "accuracy") else None
