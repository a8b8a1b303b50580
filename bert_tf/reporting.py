"""Training's progress line with its TensorBoard curves."""

import math
import time

import tensorflow as tf
from tqdm import tqdm

from tokenization.errors import InputError

# Seconds between two looks at the newest loss for the progress line: each one waits for the
# device.
LINE_INTERVAL = 2.0


def summarize(steps, sentence_name):
    """Losses and accuracies over some steps, from their sums.

    Args:
        steps: a list of what `TrainingStep` returned.
        sentence_name: "next_sentence" or "sentence_order", for the names of the scalars.

    Returns:
        A dict: TensorBoard's name -> number.
    """
    total = {name: sum(float(step[name]) for step in steps) for name in steps[0]}
    scalars = {"loss/total": total["loss"] / len(steps)}
    for ours, shown in (("masked_lm", "masked_lm"), ("next_sentence", sentence_name)):
        if f"{ours}_weight" in total:
            weight = max(total[f"{ours}_weight"], 1e-9)  # a batch may hold no prediction
            scalars[f"loss/{shown}"] = total[f"{ours}_loss"] / weight
            scalars[f"accuracy/{shown}"] = total[f"{ours}_correct"] / weight
    scalars["learning_rate"] = float(steps[-1]["learning_rate"])
    scalars["gradient_norm"] = total["gradient_norm"] / len(steps)
    return scalars


def check_finite(steps, last_step):
    """Stops a run whose loss or gradient is no number any more: its weights are lost.

    Args:
        steps: a list of what `TrainingStep` returned.
        last_step: the number of the last of them.

    Raises:
        InputError: names the first such step.
    """
    for step, metrics in enumerate(steps, start=last_step - len(steps) + 1):
        loss, norm = float(metrics["loss"]), float(metrics["gradient_norm"])
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise InputError(
                "loss and gradient must stay finite (a lower --learning_rate or a longer "
                f"--num_warmup_steps may help; the checkpoints before are kept). Received: loss "
                f"{loss}, gradient norm {norm} at step {step}, learning rate "
                f"{float(metrics['learning_rate']):.3g}"
            )


class Reporter:
    """Writes TensorBoard scalars by global step, shows a line with the time left.

    Args:
        directory: where the event file goes.
        start_step: updates made before.
        num_train_steps: the last step.
        batch_size: examples of a step, for examples/s.
        summary_steps: updates between two points of a curve.
        sentence_name: "next_sentence" or "sentence_order".
    """

    def __init__(
        self, directory, start_step, num_train_steps, batch_size, summary_steps, sentence_name
    ):
        self.writer = tf.summary.create_file_writer(str(directory))
        self.bar = tqdm(
            total=num_train_steps, initial=start_step, unit="step", desc="training", smoothing=0.1
        )
        self.batch_size = batch_size
        self.summary_steps = summary_steps
        self.sentence_name = sentence_name
        self.pending = []
        self.timed_steps = 0
        self.window_start = self.last_line = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.writer.close()
        self.bar.close()

    def step(self, step, metrics):
        """Takes the metrics of update number `step`."""
        self.pending.append(metrics)
        self.bar.update(1)
        if self.window_start is None:  # the first step compiled, so its time says nothing
            self.window_start = self.last_line = time.perf_counter()
        else:
            self.timed_steps += 1
        if time.perf_counter() - self.last_line > LINE_INTERVAL:
            self.bar.set_postfix(
                loss=f"{float(metrics['loss']):.3f}",
                lr=f"{float(metrics['learning_rate']):.2e}",
                examples_s=f"{self._rate():.1f}",
            )
            self.last_line = time.perf_counter()
        if step % self.summary_steps == 0:
            self.flush(step)

    def flush(self, step):
        """Writes the curves' next point, of all steps since the last one."""
        if not self.pending:
            return
        check_finite(self.pending, step)
        scalars = summarize(self.pending, self.sentence_name)
        if self.timed_steps:
            scalars["throughput/examples_per_second"] = self._rate()
        with self.writer.as_default(step=step):
            for name, value in scalars.items():
                tf.summary.scalar(name, value)
        self.writer.flush()
        self.pending = []
        self.restart_clock()

    def restart_clock(self):
        """Leaves out of the rate what is no training, such as writing a checkpoint."""
        self.timed_steps = 0
        self.window_start = time.perf_counter()

    def _rate(self):
        seconds = max(time.perf_counter() - self.window_start, 1e-9)
        return self.timed_steps * self.batch_size / seconds


def write_evaluation(directory, results, step):
    """Adds an evaluation's numbers to TensorBoard, in a run of their own named "eval"."""
    with tf.summary.create_file_writer(f"{directory}/eval").as_default(step=step):
        for name, value in results.items():
            if name != "global_step":
                kind, _, quantity = name.rpartition("_")
                tf.summary.scalar(f"{quantity}/{kind}" if kind else "loss/total", value)
