"""Reports the progress of training, on the terminal as in TensorBoard.

Shapes: n updates of one call of the compiled loop, N updates between two points of a curve.
"""

import math
import os
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import tensorflow as tf

from bert_common.progress import Progress, progress
from bert_tf.objective import Objective
from bert_tf.summaries.event_files import EVALUATION_RUN, drop_later_events, rewrite_events
from bert_tf.summaries.histograms import write_histograms
from bert_tf.summaries.scalars import MetricsWindow, scalars, tag_of

if TYPE_CHECKING:  # it is in a higher layer
    from bert_tf.training.time_budget import TimeBudget

# Seconds between two fetches of the newest loss to display, as each fetch waits for the device.
LOOK_INTERVAL = 2.0


class Illustrations(NamedTuple):
    """The texts and images that TensorBoard shows for an evaluation."""

    texts: dict[str, str]  # tag -> Markdown
    images: dict[str, np.ndarray]  # tag -> [height, width, 3] uint8


NO_ILLUSTRATIONS = Illustrations({}, {})


class Reporter:
    """Writes TensorBoard's scalars by global step, and shows the progress and the time left.

    Points that an earlier run wrote after `start_step` are removed.

    Args:
        directory: the folder for the event file.
        objective: the model's `Objective`, which names its curves.
        start_step: the number of previous updates.
        num_train_steps: the last step.
        batch_size: examples per step, for examples/s.
        summary_steps: updates between two points of a curve.
        writes: whether to write files and show progress; False on all workers except the first.
        skipped_before: updates skipped before `start_step`.
        weight_norm: a function without arguments, called once per point; or None.
        time_budget: the budget whose spent time is shown as progress; None: updates are shown.

    Attributes:
        skipped: updates skipped since the run began, as far as metrics have been fetched.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        objective: Objective,
        start_step: int = 0,
        *,
        num_train_steps: int,
        batch_size: int,
        summary_steps: int,
        writes: bool = True,
        skipped_before: int = 0,
        weight_norm: Callable[[], Any] | None = None,
        time_budget: "TimeBudget | None" = None,
    ) -> None:
        self.directory = str(directory)
        self.writes = writes
        if writes:
            drop_later_events(self.directory, start_step)
        self.writer = (
            tf.summary.create_file_writer(self.directory)
            if writes
            else tf.summary.create_noop_writer()
        )
        self.num_train_steps = num_train_steps
        self.time_budget = time_budget
        # Opened when timing starts, so that compilation does not distort the remaining time.
        self.bar: Progress | None = None
        self.batch_size = batch_size
        self.summary_steps = summary_steps
        self.scalars = scalars(objective)
        self.skipped = skipped_before
        self.weight_norm = weight_norm
        self.waiting: list[dict[str, Any]] = []  # metrics that are still on the device
        # Fetched metrics of the same window.
        self.fetched: list[dict[str, np.ndarray]] = []
        self.timed_steps = 0
        self.window_start = self.last_look = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.writer.close()
        if self.bar is not None:
            self.bar.close()

    def steps(self, last_step: int, metrics: dict[str, Any]) -> None:
        """Takes the metrics of `TrainingStep.loop` for the updates up to `last_step`.

        They stay on the device until the progress or a point needs them. Updates with "skipped" 1
        are left out of every mean.
        """
        self.waiting.append(metrics)
        count = len(metrics["loss"])
        if self.bar is None:  # the first call, which compiled the steps, is not timed
            self._fetch()
            self.restart_clock()
            self._open_bar(last_step)
        else:
            self.timed_steps += count
            if time.perf_counter() - self.last_look > LOOK_INTERVAL:
                self._fetch()
                self._show()
            if self.time_budget is not None:
                seconds = min(self.time_budget.spent, self.time_budget.seconds)
                count = round(seconds) - self.bar.n
            self.bar.update(count)
        if last_step % self.summary_steps == 0:
            self.flush(last_step)

    def _open_bar(self, step):
        """Shows the progress in updates, or in seconds if there is a time budget."""
        total, unit, done = self.num_train_steps, "steps", step
        if self.time_budget is not None:
            budget = self.time_budget
            total, unit, done = round(budget.seconds), "seconds", round(budget.spent)
        self.bar = progress("training", total, unit, done=done, shown=self.writes)

    def flush(self, step: int) -> None:
        """Writes the curves' next point, over all updates since the last point."""
        self._fetch()
        if not self.fetched:
            return
        seconds = self._seconds()
        self._show()
        names, parts = self.fetched[0], self.fetched
        window = MetricsWindow(
            columns={name: np.concatenate([part[name] for part in parts]) for name in names},  # [N]
            timed=self.timed_steps,
            seconds=seconds,
            batch_size=self.batch_size,
            skipped=self.skipped,
            weight_norm=self.weight_norm,
        )
        with self.writer.as_default(step=step):
            for tag, (meaning, function) in self.scalars.items():
                value = function(window)
                if value is not None:
                    tf.summary.scalar(tag, value, description=meaning)
        self.writer.flush()
        self.fetched = []
        self.restart_clock()

    def restart_clock(self) -> None:
        """Excludes time that is not training, such as writing a checkpoint, from the rates.

        Call it right after `flush`, as updates since then are no longer timed.
        """
        self.timed_steps = 0
        self.window_start = time.perf_counter()

    def texts(self, texts: Mapping[str, str], step: int) -> None:
        """Writes texts, name -> Markdown, for TensorBoard's text page."""
        with self.writer.as_default(step=step):
            for name, text in texts.items():
                tf.summary.text(name, text)
        self.writer.flush()

    def histograms(self, names: Collection[str], values: Any, step: int) -> None:
        """Writes the histograms of a step; `names` and `values` as for `write_histograms`."""
        write_histograms(self.writer, names, values, step)

    def evaluation(
        self,
        step: int,
        results: Mapping[str, float],
        illustrations: Illustrations = NO_ILLUSTRATIONS,
    ) -> None:
        """Writes an evaluation by `write_evaluation`."""
        if self.writes:
            write_evaluation(self.directory, results, step, illustrations)

    def _fetch(self):
        """Copies the waiting metrics from the device when it has computed them."""
        for metrics in self.waiting:
            arrays = {name: np.asarray(value, np.float64) for name, value in metrics.items()}
            self.skipped += int(arrays["skipped"].sum())
            self.fetched.append(arrays)
        self.waiting = []

    def _show(self):
        """Updates the numbers next to the progress."""
        if self.bar is None:
            return
        losses = np.concatenate([m["loss"][m["skipped"] == 0] for m in self.fetched])
        rate = self.fetched[-1]["learning_rate"][-1]
        loss = losses[-1] if len(losses) else math.nan
        shown: dict[str, Any] = {"loss": f"{loss:.3f}", "lr": f"{rate:.2e}"}
        if self.timed_steps:
            examples = self.timed_steps * self.batch_size
            shown["examples_s"] = f"{examples / self._seconds():.1f}"
        if self.skipped:
            shown["skipped"] = self.skipped
        self.bar.set_postfix(shown, refresh=False)
        self.last_look = time.perf_counter()

    def _seconds(self):
        return max(time.perf_counter() - self.window_start, 1e-9)


def write_evaluation(
    directory: str,
    results: Mapping[str, float],
    step: int,
    illustrations: Illustrations = NO_ILLUSTRATIONS,
) -> None:
    """Adds an evaluation to TensorBoard as the run `EVALUATION_RUN` next to the training's run.

    An earlier evaluation after the same number of updates is replaced. Each has an event file of
    its own, so that a program that evaluates beside a training rewrites no file in use.
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
            if (tag := tag_of(name)) is not None:
                tf.summary.scalar(tag, value)
        for name, text in illustrations.texts.items():
            tf.summary.text(name, text)
        for name, image in illustrations.images.items():
            tf.summary.image(name, image[None])  # [height, width, 3] -> [1, height, width, 3]
    writer.flush()
