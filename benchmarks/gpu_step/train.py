"""Trains with the exported programs, on rows drawn from a text."""

import os
import time

import jax
import numpy as np

from benchmarks.gpu_step.lesson_batches import LessonBatches
from benchmarks.gpu_step.runtime import Program, peak_memory, read_description
from benchmarks.gpu_step.state import STATE_FILE, learning_rate, read_state, write_arrays

CURVES = (
    "loss", "masked_lm_loss", "masked_lm_accuracy", "next_sentence_accuracy", "gradient_norm",
    "skipped",
)  # fmt: skip


def train(arguments):
    """Trains by lessons, resuming from the folder's state.npz and replacing it regularly.

    Args:
        arguments: folder (written by `prepare`), text, lessons, freeze, processes, eval_every,
            train_steps, save_seconds, seed; see the command line.
    """
    folder = arguments.folder
    description, state = read_description(folder), read_state(os.path.join(folder, STATE_FILE))
    frozen = arguments.freeze.split(",") if arguments.freeze else []
    if unknown := [name for name in frozen if f"weights/{name}" not in state]:
        raise SystemExit(
            f"error: --freeze must name weights of the model. Received: {', '.join(unknown)}"
        )
    step = int(state["iterations"])
    batches = LessonBatches(
        arguments.text, arguments.lessons, description, arguments.seed, step, arguments.processes
    )
    train_steps = arguments.train_steps or batches.count
    try:
        if train_steps > batches.count:
            raise SystemExit(
                f"error: --train_steps must be at most the lessons' updates, {batches.count}. "
                f"Received: {train_steps}"
            )
        device = jax.devices()[0]
        print(f"update {step}, lessons of {batches.count} updates of {description['batch']} x "
              f"{description['length']}, {device.device_kind}; compiling", flush=True)  # fmt: skip
        for row in description["programs"]["update"]["arguments"]:
            if row["name"].startswith(("slots/", "skipped")):  # zeros may not be in the file
                state.setdefault(row["name"], np.zeros(row["shape"], row["dtype"]))
        training = Training(folder, device, state, frozen)
        run = Run(folder, training, state, arguments.save_seconds, arguments.eval_every)
        run.to(train_steps, batches)
    finally:
        batches.close()


class Training:
    """A training step of both programs, whose arrays stay on the device.

    Args:
        folder: the folder that `export_step` wrote.
        device: a `jax.Device`.
        state: the arrays that training starts from, see `state`.
        frozen: the names of weights to keep unchanged, without "weights/".
    """

    def __init__(self, folder, device, state, frozen=()):
        self.description = read_description(folder)
        self.gradients = Program(folder, "gradients", device)
        self.update = Program(folder, "update", device)
        constants = {"replica": 0, "scale": 1.0}
        self.values = {
            **self.update.put(state),
            **self.gradients.put({**state, **constants}),
        }
        self.kept = {f"weights/{name}" for name in frozen}

    def step(self, batch, rate):
        """Starts one update without waiting for its end, and returns its metrics.

        Args:
            batch: the features, "batch/NAME" -> array.
            rate: the learning rate.
        """
        batch = self.gradients.put({**batch, **self.denominators(batch)})
        values = {**self.values, **batch}
        values |= self.gradients(values)
        new = self.update({**values, **self.update.put({"learning_rate": rate})})
        changed = self.values.keys() - self.kept
        self.values |= {name: value for name, value in new.items() if name in changed}
        sums = {name: value for name, value in values.items() if name.startswith("sums/")}
        return {**sums, **{n: v for n, v in new.items() if n.startswith("metrics/")}}

    def accuracies(self, batches):
        """Returns the accuracies on masked words and on sentence labels, without an update.

        Args:
            batches: features and denominators on the device, a list of dicts. Dropout is active if
                the program has it.
        """
        found = [self.gradients({**self.values, **batch}) for batch in batches]
        totals = {
            name: sum(float(sums[f"sums/{name}"]) for sums in found)
            for name in ("masked_lm_correct", "masked_lm_weight",
                         "next_sentence_correct", "next_sentence_weight")
        }  # fmt: skip
        return tuple(
            totals[f"{name}_correct"] / totals[f"{name}_weight"]
            for name in ("masked_lm", "next_sentence")
        )

    def denominators(self, batch):
        """Returns the denominators of the losses, which are the sums of weights plus epsilon."""
        return {
            f"denominators/{name}": np.sum(batch[f"batch/{row['weights']}"], dtype=np.float32)
            + np.float32(row["epsilon"])
            for name, row in self.description["denominators"].items()
        }

    def state(self):
        """Copies weights, slots and the counts of updates to the host."""
        kept = ("weights/", "slots/", "iterations", "skipped")
        return {name: np.asarray(v) for name, v in self.values.items() if name.startswith(kept)}


class Run:
    """Makes updates, and prints and saves their results.

    Args:
        folder: the folder of state.npz.
        training: a `Training`.
        state: the state that it started from.
        save_seconds: the seconds between two writes of state.npz.
        eval_every: the updates between two measurements.
    """

    def __init__(self, folder, training, state, save_seconds, eval_every):
        self.path, self.training = os.path.join(folder, STATE_FILE), training
        self.step, self.save_seconds = int(state["iterations"]), save_seconds
        self.eval_every = eval_every
        self.curves = {name: list(state.get(f"curves/{name}", ())) for name in CURVES}

    def to(self, train_steps, batches):
        """Makes updates with the batches of a `LessonBatches` until there are `train_steps`."""
        schedule, pending = self.training.description["schedule"], []
        put, denominators = self.training.gradients.put, self.training.denominators
        held_out = {
            name: [put({**batch, **denominators(batch)}) for batch in of_name]
            for name, of_name in batches.held_out.items()
        }
        start, first, saved = time.perf_counter(), self.step, time.perf_counter()
        while self.step < train_steps:
            batch = batches.of_step(self.step)
            rate = learning_rate(schedule, self.step) * np.float32(batches.factor())
            pending.append(self.training.step(batch, rate))
            self.step += 1
            last = self.step == train_steps
            due = last or time.perf_counter() - saved > self.save_seconds
            measure = last or self.step % self.eval_every == 0
            if len(pending) == 10 or due or measure:  # the host runs ahead by at most 10 updates
                _append(self.curves, pending)
                pending = []
            if due or measure:
                self._print((self.step - first) / (time.perf_counter() - start))
            if measure:
                self._measure(held_out)
            if due:
                numbers = {f"curves/{n}": np.array(v, np.float32) for n, v in self.curves.items()}
                write_arrays(self.path, {**self.training.state(), **numbers})
                saved = time.perf_counter()
        if peak := peak_memory(self.training.gradients.device):
            print(f"peak memory {peak / 2**30:.2f} GiB")

    def _print(self, rate):
        recent = {name: np.mean(values[-100:]) for name, values in self.curves.items() if values}
        print(f"update {self.step}: loss {recent['loss']:.4f}, masked words "
              f"{recent['masked_lm_accuracy']:.4f} right, sentence labels "
              f"{recent['next_sentence_accuracy']:.4f} (mean of the last 100), "
              f"{rate * self.training.description['batch']:.4g} rows/s", flush=True)  # fmt: skip

    def _measure(self, held_out):
        for name, batches in held_out.items():
            words, labels = self.training.accuracies(batches)
            print(f"  held out, {name}: masked words {words:.4f} right, sentence labels "
                  f"{labels:.4f}", flush=True)  # fmt: skip


def _append(curves, metrics):
    """Waits for some updates, and appends their metrics to the curves."""
    for row in metrics:
        row = {name.split("/")[1]: float(value) for name, value in row.items()}
        weight = max(row["masked_lm_weight"], 1.0)
        row["masked_lm_loss"] /= weight
        row["masked_lm_accuracy"] = row["masked_lm_correct"] / weight
        labels = max(row.get("next_sentence_weight", 0.0), 1.0)
        row["next_sentence_accuracy"] = row.get("next_sentence_correct", 0.0) / labels
        for name, values in curves.items():
            values.append(row[name])
