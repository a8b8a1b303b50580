"""Logs skipped non-finite steps; too many in a row end training."""

import json
import math
import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_tf.training.interfaces import TrainingData
from bert_tf.training.mixed_precision import MINIMUM_SCALE
from bert_tf.training.state import TrainingState

if TYPE_CHECKING:  # it imports this module
    from bert_tf.training.loop import TrainingConfig

# The log, in the run's directory.
SKIPPED_FILE = "skipped_steps.jsonl"

# How many records of a skipped step its warning names; the log names all.
NAMED_RECORDS = 3


class SkippedSteps:
    """Logs steps with a non-finite loss or gradient, and their examples; see `check`."""

    def __init__(
        self, state: TrainingState, data: TrainingData, config: "TrainingConfig", writes: bool
    ) -> None:
        self.state = state
        self.data = data
        self.config = config
        self.writes = writes
        self.skipped_in_a_row = 0
        self.path = os.path.join(config.output_dir, SKIPPED_FILE)
        if writes:
            self._drop_later()

    def check(self, metrics: Mapping[str, Any]) -> None:
        """Checks the metrics of the steps up to `state.step`, which waits for the device.

        Raises an InputError if more consecutive steps than allowed were skipped, or if the gradient
        overflows even at the minimum loss scale.
        """
        skipped = metrics["skipped"].numpy()
        names = ("loss", "gradient_norm", "learning_rate", "loss_scale")
        columns = {name: metrics[name].numpy() for name in names if name in metrics}
        for i, was_skipped in enumerate(skipped):
            if not was_skipped:
                self.skipped_in_a_row = 0
                continue
            row = {name: float(column[i]) for name, column in columns.items()}
            step = self.state.step - len(skipped) + 1 + i
            if "loss_scale" in row and math.isfinite(row["loss"]):
                # The gradient overflows float16, as happens now and then. The records are not at
                # fault, and finding their names would take long.
                self._log(step, row, [])
                self._check_scale(step, row)
            else:
                self._log(step, row, self.data.names(self.config, step - 1) if self.writes else [])
                self._check_count(step, row)

    def _log(self, step, row, records):
        """Writes step, numbers and records to the log, and warns."""
        if not self.writes:
            return
        with open(self.path, "a", encoding="utf-8") as file:
            line = {"step": step, **{k: repr(v) for k, v in row.items()}, "records": records}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        listed = f"its records ({', '.join(records[:NAMED_RECORDS])}, ...) are listed"
        if not records:
            listed = f"too large for float16 at loss scale {row['loss_scale']:g}; noted"
        warnings.warn(
            f"step {step} changed no weight: loss {row['loss']:.4g}, gradient norm "
            f"{row['gradient_norm']:.4g}; {listed} in {self.path}",
            stacklevel=2,
        )

    def _drop_later(self):
        """Removes steps that will be repeated and a truncated last line; keeps damaged lines."""
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as file:
            lines = [line for line in file if line.endswith(b"\n")]
        with atomic_write(self.path) as file:
            file.writelines(line for line in lines if _step_of(line) <= self.state.step)

    def _check_scale(self, step, row):
        if row["loss_scale"] <= MINIMUM_SCALE:
            raise InputError(
                f"float16 gradients must be finite at a loss scale above {MINIMUM_SCALE:g} "
                "(--precision=bfloat16 needs no loss scale; a lower --learning_rate may help). "
                f"Received: gradient norm {row['gradient_norm']:.4g} at loss scale "
                f"{row['loss_scale']:g}, step {step}"
            )

    def _check_count(self, step, row):
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row > self.config.max_bad_steps:
            raise InputError(
                "loss and gradient may be non-finite in at most --max_bad_steps="
                f"{self.config.max_bad_steps} consecutive steps (a lower --learning_rate or a "
                "longer --num_warmup_steps may help; earlier checkpoints are kept). Received: loss "
                f"{row['loss']:.4g}, gradient norm {row['gradient_norm']:.4g} at step {step}, "
                f"learning rate {row['learning_rate']:.3g}"
            )


def _step_of(line):
    """Returns the step of a line in the log; 0 if the line is damaged."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return 0
