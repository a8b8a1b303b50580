"""Trains with the exported programs on a file of batches."""

import os
import time

import jax
import numpy as np

from gpu_step.runtime import Program, peak_memory, read_description
from gpu_step.state import (
    BATCHES_FILE,
    STATE_FILE,
    learning_rate,
    new_state,
    read_state,
    write_arrays,
)

CURVES = ("loss", "masked_lm_loss", "masked_lm_accuracy", "gradient_norm", "skipped")


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


class Training:
    """The step as both programs make it; the arrays stay on the device.

    Args:
        folder: the folder that `export_step` wrote.
        device: a `jax.Device`.
        state: the arrays that training starts from, see `state`.
    """

    def __init__(self, folder, device, state):
        self.description = read_description(folder)
        self.gradients = Program(folder, "gradients", device)
        self.update = Program(folder, "update", device)
        constants = {"replica": 0, "scale": 1.0}
        self.values = {
            **self.update.put(state),
            **self.gradients.put({**state, **constants}),
        }

    def step(self, batch, rate):
        """One update, which is still being computed when this returns; returns its metrics.

        Args:
            batch: the features, "batch/NAME" -> array.
            rate: the learning rate.
        """
        return self.step_on_device(self.gradients.put({**batch, **self.denominators(batch)}), rate)

    def step_on_device(self, batch, rate):
        """As `step`, with features and denominators that are on the device already."""
        values = {**self.values, **batch}
        values |= self.gradients(values)
        new = self.update({**values, **self.update.put({"learning_rate": rate})})
        self.values |= {name: value for name, value in new.items() if name in self.values}
        sums = {name: value for name, value in values.items() if name.startswith("sums/")}
        return {**sums, **{n: v for n, v in new.items() if n.startswith("metrics/")}}

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
    """Trains to `train_steps` updates; resumes from the folder's state.npz.

    Args:
        folder: what `prepare` wrote; its state.npz is replaced as training goes on.
        train_steps: updates in all, those made before included; None: one for each batch.
        batches: the file of batches; None: the folder's own.
        save_seconds: between two writings of state.npz.
        seed: of new weights, where there is no state.npz.
    """
    path = os.path.join(folder, STATE_FILE)
    if not os.path.exists(batches or _batches_of(folder)):
        raise SystemExit(f"error: there is no file {batches or _batches_of(folder)}")
    description, batches = read_description(folder), Batches(batches or _batches_of(folder))
    resumed = os.path.exists(path)
    state = read_state(path) if resumed else new_state(description, seed)
    step = int(state["iterations"])
    train_steps = train_steps or batches.first_step + batches.count
    if step < batches.first_step:
        raise SystemExit(
            "error: the batches must begin at the state's count of updates or before. Received: "
            f"batches from {batches.first_step}, a state at {step}"
        )
    device = jax.devices()[0]
    print(f"{'resuming' if resumed else 'new weights'} at update {step} of {train_steps}, "
          f"{batches.count} batches of {description['batch']} x {description['length']}, "
          f"{device.device_kind}; compiling", flush=True)  # fmt: skip
    training = Training(folder, device, state)
    curves = {name: list(state.get(f"curves/{name}", ())) for name in CURVES}
    pending, start, first, saved = [], time.perf_counter(), step, time.perf_counter()
    while step < train_steps:
        rate = learning_rate(description["schedule"], step)
        pending.append(training.step(batches.of_step(step), rate))
        step += 1
        due = time.perf_counter() - saved > save_seconds
        if len(pending) == 10 or due or step == train_steps:  # the host runs ahead by as many
            _append(curves, pending)
            pending = []
        if due or step == train_steps:
            rate = (step - first) / (time.perf_counter() - start)
            recent = {name: np.mean(values[-100:]) for name, values in curves.items()}
            print(f"update {step}: loss {recent['loss']:.4f}, masked words "
                  f"{recent['masked_lm_accuracy']:.4f} right (mean of the last 100), "
                  f"{rate * description['batch']:.4g} rows/s", flush=True)  # fmt: skip
            numbers = {f"curves/{name}": np.array(v, np.float32) for name, v in curves.items()}
            write_arrays(path, {**training.state(), **numbers})
            saved = time.perf_counter()
    if peak := peak_memory(device):
        print(f"peak memory {peak / 2**30:.2f} GiB")


def _batches_of(folder):
    return os.path.join(folder, BATCHES_FILE)


def _append(curves, metrics):
    """Waits for some updates, and adds their numbers to the curves."""
    for row in metrics:
        row = {name.split("/")[1]: float(value) for name, value in row.items()}
        weight = max(row["masked_lm_weight"], 1.0)
        row["masked_lm_loss"] /= weight
        row["masked_lm_accuracy"] = row["masked_lm_correct"] / weight
        for name, values in curves.items():
            values.append(row[name])
