"""Trains with the exported programs."""

import os
import time

import jax
import numpy as np

from benchmarks.gpu_step.runtime import Program, peak_memory, read_description
from benchmarks.gpu_step.state import (
    BATCHES_FILE,
    STATE_FILE,
    learning_rate,
    new_state,
    read_state,
    write_arrays,
)

CURVES = (
    "loss", "masked_lm_loss", "masked_lm_accuracy", "next_sentence_accuracy", "gradient_norm",
    "skipped",
)  # fmt: skip


class Batches:
    """The batches of a file, one for each update; after the last they come in other orders.

    Args:
        path: the file: feature -> [batches, rows, ...], and "first_step", the updates before it.
    """

    def __init__(self, path):
        with np.load(path) as file:
            self.features = {name: file[name] for name in file.files if name != "first_step"}
            self.first_step = int(file["first_step"])
        self.count = len(self.features["input_ids"])

    def of_step(self, step):
        """The features of the batch that follows `step` updates."""
        again, index = divmod(step - self.first_step, self.count)
        if again:
            index = np.random.default_rng(again).permutation(self.count)[index]
        return {f"batch/{name}": value[index] for name, value in self.features.items()}

    def factor(self):
        """What the learning rate is multiplied by."""
        return 1.0


class Training:
    """The step as both programs make it; the arrays stay on the device.

    Args:
        folder: the folder that `export_step` wrote.
        device: a `jax.Device`.
        state: the arrays that training starts from, see `state`.
        frozen: names of weights that no update changes, without "weights/".
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
        """One update, which is still being computed when this returns; returns its metrics.

        Args:
            batch: the features, "batch/NAME" -> array.
            rate: the learning rate.
        """
        features = {**batch, **self.denominators(batch)}
        return self.step_on_device(self.gradients.put(features), rate)

    def step_on_device(self, batch, rate):
        """As `step`, with features and denominators that are on the device already."""
        values = {**self.values, **batch}
        values |= self.gradients(values)
        new = self.update({**values, **self.update.put({"learning_rate": rate})})
        changed = self.values.keys() - self.kept
        self.values |= {name: value for name, value in new.items() if name in changed}
        sums = {name: value for name, value in values.items() if name.startswith("sums/")}
        return {**sums, **{n: v for n, v in new.items() if n.startswith("metrics/")}}

    def accuracies(self, batches):
        """The shares of masked words and of sentence labels that are right, without an update.

        Args:
            batches: features and denominators on the device, a list of dicts. With dropout in the
                program, it is on here too.
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
        """What the sums of the losses are divided by: the sums of weights, plus epsilon."""
        return {
            f"denominators/{name}": np.sum(batch[f"batch/{row['weights']}"], dtype=np.float32)
            + np.float32(row["epsilon"])
            for name, row in self.description["denominators"].items()
        }

    def programs(self):
        """Both programs by name."""
        return {"gradients": self.gradients, "update": self.update}

    def state(self):
        """Copies weights, slots and the count of updates to the host."""
        kept = ("weights/", "slots/", "iterations")
        return {name: np.asarray(v) for name, v in self.values.items() if name.startswith(kept)}


def train(folder, train_steps, batches=None, save_seconds=60.0, seed=0):
    """Trains to `train_steps` updates on a file of batches; resumes from the folder's state.npz.

    Args:
        folder: what `prepare` wrote; its state.npz is replaced as training goes on.
        train_steps: updates in all, those made before included; None: one for each batch.
        batches: the file of batches; None: the folder's own.
        save_seconds: between two writings of state.npz.
        seed: of new weights, where there is no state.npz.
    """
    if not os.path.exists(batches or _batches_of(folder)):
        raise SystemExit(f"error: there is no file {batches or _batches_of(folder)}")
    batches = Batches(batches or _batches_of(folder))
    state = _initial_state(folder, seed)
    step = int(state["iterations"])
    if step < batches.first_step:
        raise SystemExit(
            "error: the batches must begin at the state's count of updates or before. Received: "
            f"batches from {batches.first_step}, a state at {step}"
        )
    training = _start(folder, state, f"{batches.count} batches")
    run = Run(folder, training, state, save_seconds)
    run.to(train_steps or batches.first_step + batches.count, batches)


def train_by_lessons(folder, arguments):
    """Trains by lessons on rows that are drawn from a text; resumes from the folder's state.npz.

    Args:
        folder: what `prepare` wrote; its state.npz is replaced as training goes on.
        arguments: text, lessons, freeze, processes, eval_every, train_steps, save_seconds, seed;
            see the command line.
    """
    from benchmarks.gpu_step.lesson_batches import LessonBatches

    description, state = read_description(folder), _initial_state(folder, arguments.seed)
    frozen = arguments.freeze.split(",") if arguments.freeze else []
    if unknown := [name for name in frozen if f"weights/{name}" not in state]:
        raise SystemExit(
            f"error: --freeze must name weights of the model. Received: {', '.join(unknown)}"
        )
    batches = LessonBatches(
        arguments.text, arguments.lessons, description, arguments.seed, int(state["iterations"]),
        arguments.processes,
    )  # fmt: skip
    train_steps = arguments.train_steps or batches.count
    try:
        if train_steps > batches.count:
            raise SystemExit(
                f"error: --train_steps must be at most the lessons' updates, {batches.count}. "
                f"Received: {train_steps}"
            )
        training = _start(folder, state, f"lessons of {batches.count} updates", frozen)
        run = Run(folder, training, state, arguments.save_seconds)
        run.measure_every(arguments.eval_every, batches.held_out)
        run.to(train_steps, batches)
    finally:
        batches.close()


def _initial_state(folder, seed):
    path = os.path.join(folder, STATE_FILE)
    return read_state(path) if os.path.exists(path) else new_state(read_description(folder), seed)


def _start(folder, state, source, frozen=()):
    """Compiles the programs: a `Training`."""
    description, device = read_description(folder), jax.devices()[0]
    found = os.path.exists(os.path.join(folder, STATE_FILE))
    if slots := [row for row in description["programs"]["update"]["arguments"]
                 if row["name"].startswith("slots/") and row["name"] not in state]:  # fmt: skip
        state = {**state, **{row["name"]: np.zeros(row["shape"], row["dtype"]) for row in slots}}
    print(f"{'the weights of ' + STATE_FILE if found else 'new weights'}, "
          f"update {int(state['iterations'])}, {source} of {description['batch']} x "
          f"{description['length']}, {device.device_kind}; compiling", flush=True)  # fmt: skip
    return Training(folder, device, state, frozen)


class Run:
    """Makes updates, prints and saves what they give.

    Args:
        folder: where state.npz is written.
        training: a `Training`.
        state: what it started from.
        save_seconds: between two writings of state.npz.
    """

    def __init__(self, folder, training, state, save_seconds):
        self.path, self.training = os.path.join(folder, STATE_FILE), training
        self.step, self.save_seconds = int(state["iterations"]), save_seconds
        self.curves = {name: list(state.get(f"curves/{name}", ())) for name in CURVES}
        self.measure_at, self.held_out = None, {}

    def measure_every(self, updates, held_out):
        """Measures on batches after every so many updates.

        Args:
            updates: how many.
            held_out: a name -> a list of features, NumPy arrays.
        """
        put, training = self.training.gradients.put, self.training
        self.measure_at = updates
        self.held_out = {
            name: [put({**batch, **training.denominators(batch)}) for batch in batches]
            for name, batches in held_out.items()
        }

    def to(self, train_steps, batches):
        """Makes updates until there are `train_steps`.

        Args:
            train_steps: updates in all.
            batches: `Batches`, or `LessonBatches`.
        """
        schedule, pending = self.training.description["schedule"], []
        start, first, saved = time.perf_counter(), self.step, time.perf_counter()
        while self.step < train_steps:
            batch = batches.of_step(self.step)
            rate = learning_rate(schedule, self.step) * np.float32(batches.factor())
            pending.append(self.training.step(batch, rate))
            self.step += 1
            last = self.step == train_steps
            due = last or time.perf_counter() - saved > self.save_seconds
            measure = self.measure_at and (last or self.step % self.measure_at == 0)
            if len(pending) == 10 or due or measure:  # the host runs ahead by as many
                _append(self.curves, pending)
                pending = []
            if due or measure:
                self._print((self.step - first) / (time.perf_counter() - start))
            if measure:
                self._measure()
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

    def _measure(self):
        for name, batches in self.held_out.items():
            words, labels = self.training.accuracies(batches)
            print(f"  held out, {name}: masked words {words:.4f} right, sentence labels "
                  f"{labels:.4f}", flush=True)  # fmt: skip


def _batches_of(folder):
    return os.path.join(folder, BATCHES_FILE)


def _append(curves, metrics):
    """Waits for some updates, and adds their numbers to the curves."""
    for row in metrics:
        row = {name.split("/")[1]: float(value) for name, value in row.items()}
        weight = max(row["masked_lm_weight"], 1.0)
        row["masked_lm_loss"] /= weight
        row["masked_lm_accuracy"] = row["masked_lm_correct"] / weight
        labels = max(row.get("next_sentence_weight", 0.0), 1.0)
        row["next_sentence_accuracy"] = row.get("next_sentence_correct", 0.0) / labels
        for name, values in curves.items():
            values.append(row[name])
