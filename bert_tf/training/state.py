"""Holds the training state, which is restored from and saved to checkpoints."""

import dataclasses
import functools
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from bert_common.errors import InputError
from bert_tf.checkpoint import (
    COUNTERS,
    STEP_NAME,
    CheckpointArrays,
    DamagedCheckpoint,
    google_arrays,
    google_variables,
    load_arrays,
    load_google_checkpoint,
    open_checkpoint,
    read_tensor,
    save_google_checkpoint,
    write_arrays,
)
from bert_tf.checkpoint_files import (
    checkpoint_path,
    exists,
    keep_newest,
    list_checkpoints,
    note_checkpoints,
    remove_checkpoint,
    remove_unfinished,
    set_aside,
)
from bert_tf.input.data_order import DataOrder
from bert_tf.optimization import DecayOptimizer
from bert_tf.training.evaluation import read_results, write_results
from bert_tf.training.mixed_precision import LossScale
from bert_tf.training.time_budget import TimeBudget
from bert_tf.training.token_dropping import TokenDropping

if TYPE_CHECKING:  # it imports this module
    from bert_tf.training.loop import TrainingConfig


@dataclasses.dataclass
class TrainingState:
    """The state that changes during training, all of which is in a checkpoint."""

    # A model with an `objective`, such as a `PretrainingModel`, created in the strategy's scope.
    model: keras.Model
    optimizer: DecayOptimizer  # built for the model, in the same scope
    loss_scale: LossScale | None = None  # for float16
    time_budget: TimeBudget | None = None
    token_dropping: TokenDropping | None = None
    step: int = 0  # the number of updates, including skipped ones
    evaluated: int = 0  # the step of the newest evaluation
    # None before training and in checkpoints of Google's code.
    order: DataOrder | None = None

    def counters(self) -> dict[str, Any]:
        """Returns numbers and arrays by names of `COUNTERS`."""
        skipped = self.optimizer.skipped.numpy()
        counters: dict[str, Any] = {"skipped_steps": skipped, "evaluated_step": self.evaluated}
        if self.order is not None:
            counters["data_order"] = np.array(self.order, np.int64)
        if self.loss_scale is not None:
            counters["loss_scale"] = self.loss_scale.scale.numpy()
            counters["loss_scale_good_steps"] = self.loss_scale.good_steps.numpy()
        if self.time_budget is not None:
            counters["spent_seconds"] = self.time_budget.spent
        if self.token_dropping is not None:
            counters["token_losses"] = np.array(self.token_dropping.losses)
        return counters

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies everything needed to resume; later updates do not change the copies.

        Learning rate and dropout are functions of the step.
        """
        numbers = {STEP_NAME: np.int64(self.step), **self.counters()}
        arrays = {name: np.asarray(value) for name, value in numbers.items()}
        for name, variable in google_variables(self.model).items():
            arrays[name] = _copy(variable)
            arrays |= {n: _copy(slot) for n, slot in self._named_slots(name, variable)}
        return arrays

    def _named_slots(self, name, variable):
        """Returns (name, slot) pairs for the variable that Google calls `name`."""
        if not variable.trainable:
            return zip()
        names = (f"{name}/{slot.suffix}" for slot in self.optimizer.slots.values())
        return zip(names, self.optimizer.slot_variables(variable), strict=True)

    def is_finished(self, num_train_steps: int) -> bool:
        """Returns True if all updates are done or the time is over."""
        return self.step >= num_train_steps or bool(self.time_budget and self.time_budget.is_over)

    def has_nothing_left(self, num_train_steps: int, evaluates: bool) -> bool:
        """Returns True if training and the last evaluation, which signals may prevent, are done."""
        return self.is_finished(num_train_steps) and not (evaluates and self.evaluated < self.step)

    def load(self, prefix: str) -> None:
        """Restores the state from a checkpoint of this project or of Google's own training.

        Slots that the file lacks (Google's has none for weights without a gradient) are unchanged.

        Raises:
            InputError: the checkpoint does not fit the model, or holds no step.
            DamagedCheckpoint: the checkpoint cannot be read completely.
        """
        reader = open_checkpoint(prefix)
        try:
            load_google_checkpoint(self.model, prefix, optimizer=self.optimizer)
        except DamagedCheckpoint:
            raise
        except InputError as error:
            raise InputError(
                f"--output_dir must be a new folder, or the folder of a run of this model: {error}"
            ) from None
        if not reader.has_tensor(STEP_NAME):
            raise InputError(f"to resume from {prefix} it must hold {STEP_NAME}. Received: none")
        for name, variable in google_variables(self.model).items():
            for slot_name, slot in self._named_slots(name, variable):
                if reader.has_tensor(slot_name):
                    slot.assign(read_tensor(reader, prefix, slot_name))
        counters: dict[str, Any] = {}
        for name in filter(reader.has_tensor, COUNTERS):
            try:
                counters[name] = read_tensor(reader, prefix, name)
            except DamagedCheckpoint:
                # The only number that differs, unless time is counted, if a step's checkpoint is
                # replaced after its evaluation; a kill may leave the new data with the old index.
                if name != "evaluated_step":
                    raise
                counters[name] = 0  # the evaluation is made again
        self.set(int(read_tensor(reader, prefix, STEP_NAME)), counters)

    def set(self, step: int, counters: Mapping[str, Any]) -> None:
        """Sets the step and those values of `counters()` that a checkpoint holds."""
        self.step = step
        self.optimizer.skipped.assign(counters.get("skipped_steps", 0))
        self.evaluated = int(counters.get("evaluated_step", step))
        if "data_order" in counters:
            # Checkpoints of release 0.1.0 have an eighth number, the kind of order; one is left.
            self.order = DataOrder(*map(int, counters["data_order"][: len(DataOrder._fields)]))
        self.optimizer.iterations.assign(step)
        if self.loss_scale is not None and "loss_scale" in counters:
            self.loss_scale.scale.assign(counters["loss_scale"])
            self.loss_scale.good_steps.assign(counters["loss_scale_good_steps"])
        if self.time_budget is not None and "spent_seconds" in counters:
            self.time_budget.resume(float(counters["spent_seconds"]))
        if self.token_dropping is not None and "token_losses" in counters:
            self.token_dropping.losses.assign(counters["token_losses"])


def _copy(variable):
    """Copies a variable's value, once; on a CPU `numpy` may return the variable's own memory."""
    value = variable.numpy()
    return value if value.flags.owndata else np.array(value)


def restore(
    state: TrainingState,
    output_dir: str,
    init_checkpoint: str | None = None,
    *,
    open_weights: Callable[[str], CheckpointArrays] = google_arrays,
    allow_missing: Sequence[str] = (),
    into: keras.Model | None = None,
) -> str:
    """Restores the state from the first of these that exists, and returns a line describing it.

    1. The newest checkpoint in `output_dir`, of this project or of Google's training, to resume the
       run. Unreadable checkpoints are skipped with a warning.
    2. `init_checkpoint`, which sets only weights; the run starts at step 0.
    3. The model's initial weights.

    Args:
        output_dir: the run's directory; all workers must see the same files there.
        open_weights: opens `init_checkpoint`.
        allow_missing: as in `load_arrays`, for `init_checkpoint`.
        into: the part of the model to set from `init_checkpoint`; None for the whole model.
    """
    steps = list_checkpoints(output_dir)
    for number, step in enumerate(reversed(steps), start=1):
        path = checkpoint_path(output_dir, step)
        try:
            state.load(path)
        except DamagedCheckpoint as error:
            if number == len(steps):
                raise
            warnings.warn(f"{error}; going back to the checkpoint before", stacklevel=2)
            continue
        line = f"resuming from {path}, the newest checkpoint in the output directory"
        if number > 1:
            line += " that can be read"
        if init_checkpoint:
            line += f" (--init_checkpoint={init_checkpoint} was for its first step)"
        return line
    if init_checkpoint:
        report = load_arrays(into or state.model, open_weights(init_checkpoint), allow_missing)
        return f"starting from --init_checkpoint: {report}"
    return f"starting from new weights: no checkpoint in {output_dir}, no --init_checkpoint"


def save(state: TrainingState, config: "TrainingConfig") -> None:
    """Writes a checkpoint, then removes the checkpoints that `config` does not keep."""
    start_saving(state, config)()


def start_saving(state: TrainingState, config: "TrainingConfig") -> Callable[[], None]:
    """Copies a `TrainingState`; returns a function that writes the copy as `save` does."""
    return functools.partial(_write, state.arrays(), state.step, config)


def _write(arrays, current, config):
    os.makedirs(config.output_dir, exist_ok=True)
    write_arrays(checkpoint_path(config.output_dir, current), arrays)
    for step in list_checkpoints(config.output_dir):
        if step > current:  # unreadable, as the run has resumed from an earlier checkpoint
            set_aside(checkpoint_path(config.output_dir, step))
    keep_newest(
        config.output_dir, config.keep_checkpoint_max, every=config.keep_checkpoint_every_steps
    )


class BestCheckpoint:
    """Keeps the weights with the best evaluation in a separate folder.

    Args:
        folder: the folder. Its results from before a resume count, unless their checkpoint is gone
            or they were computed on a different number of examples, and so on different data.
        score: rates an evaluation's results, as `HeldOutEvaluator.score`; the highest is kept.
        start_step: the number of previous updates. Results of later steps do not count, as these
            steps will be repeated or belong to another run.
        writes: whether this worker writes.

    Attributes:
        step: the step of the best weights; 0 before the first evaluation.
    """

    def __init__(
        self, folder: str, score: Callable[[dict[str, float]], float], start_step: int, writes: bool
    ) -> None:
        self.folder = folder
        self.score = score
        self.writes = writes
        best = read_results(folder)
        step = int(best.get("global_step", 0))
        if step > start_step or not exists(checkpoint_path(folder, step)):
            best, step = {}, 0
        self.highest = score(best) if best else -math.inf
        self.step = step
        self.examples = best.get("examples")
        if writes:
            remove_unfinished(folder)

    def save_if_better(
        self,
        state: TrainingState,
        results: dict[str, float],
        agreed: Callable[[float], float] = float,
    ) -> None:
        """Saves the weights if they are better than the best ones so far.

        `agreed` maps a worker's score to the one that counts in all workers.
        """
        score, examples = agreed(self.score(results)), results.get("examples")
        if examples is not None and self.examples not in (None, examples):
            self.highest = -math.inf
            if self.writes:
                warnings.warn(
                    f"the best checkpoint so far, in {self.folder}, was evaluated on "
                    f"{self.examples:,.0f} examples, this one on {examples:,}: the best one is "
                    "chosen anew",
                    stacklevel=2,
                )
        self.examples = examples
        if not score > self.highest:
            return
        self.highest, self.step = score, state.step
        if not self.writes:
            return
        os.makedirs(self.folder, exist_ok=True)
        save_google_checkpoint(state.model, checkpoint_path(self.folder, state.step))
        write_results(self.folder, {**results, "global_step": state.step})
        for step in list_checkpoints(self.folder):
            if step != state.step:  # an earlier run may have left later checkpoints
                remove_checkpoint(checkpoint_path(self.folder, step))
        note_checkpoints(self.folder)
