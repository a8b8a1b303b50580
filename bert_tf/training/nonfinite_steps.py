"""Takes note of the steps that were skipped, up to where a run only skips."""

import json
import math
import os
import warnings

from bert_common.errors import InputError
from bert_tf.training.mixed_precision import MINIMUM_SCALE

# The log, in the run's directory.
SKIPPED_FILE = "skipped_steps.jsonl"

# Records of a skipped step that its warning names; the file names all.
NAMED_RECORDS = 3


class SkippedSteps:
    """Takes note of steps that were skipped, and stops a run that only skips.

    Args:
        state: the `TrainingState`.
        data: what is trained on; its `names` are written down.
        config: the `TrainingConfig`.
        writes: whether this worker writes the log.
    """

    def __init__(self, state, data, config, writes):
        self.state = state
        self.data = data
        self.config = config
        self.writes = writes
        self.bad_in_a_row = 0
        self.path = os.path.join(config.output_dir, SKIPPED_FILE)
        if writes:
            self._forget_later()

    def look(self, metrics):
        """Reads the metrics of a loop that ended at `state.step`.

        Raises:
            InputError: more bad steps in a row than allowed, or a loss scale of nothing left.
        """
        skipped = metrics["skipped"].numpy()
        if not skipped.any():
            self.bad_in_a_row = 0
            return
        names = ("loss", "gradient_norm", "learning_rate", "loss_scale")
        columns = {name: metrics[name].numpy() for name in names if name in metrics}
        for i, bad in enumerate(skipped):
            if not bad:
                self.bad_in_a_row = 0
                continue
            self.state.skipped += 1
            row = {name: float(column[i]) for name, column in columns.items()}
            step = self.state.step - len(skipped) + 1 + i
            if "loss_scale" in row and math.isfinite(row["loss"]):
                # Too long for float16, as now and then it is: no fault of the records, which
                # take long to name.
                self._note(step, row, [])
                self._check_scale(step, row)
            else:
                self._note(step, row, self._names(step))
                self._check_count(step, row)

    def _names(self, step):
        return self.data.names(self.config, step - 1) if self.writes else []

    def _note(self, step, row, records):
        """Writes step, numbers and records to the log; says it in one line."""
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

    def _forget_later(self):
        """Removes the steps that will come again, and what a kill cut off; damaged lines stay."""
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as file:
            lines = [line for line in file if line.endswith(b"\n")]
        temporary = f"{self.path}.tmp-{os.getpid()}"
        with open(temporary, "wb") as file:
            file.writelines(line for line in lines if _step_of(line) <= self.state.step)
        os.replace(temporary, self.path)

    def _check_scale(self, step, row):
        if row["loss_scale"] <= MINIMUM_SCALE:
            raise InputError(
                "float16 needs gradients that fit it at a loss scale above "
                f"{MINIMUM_SCALE:g} (--precision=bfloat16 needs none; a lower --learning_rate may "
                f"help). Received: gradient norm {row['gradient_norm']:.4g} at loss scale "
                f"{row['loss_scale']:g}, step {step}"
            )

    def _check_count(self, step, row):
        self.bad_in_a_row += 1
        if self.bad_in_a_row > self.config.max_bad_steps:
            raise InputError(
                "loss and gradient may be no number in so many steps in a row: --max_bad_steps="
                f"{self.config.max_bad_steps} (a lower --learning_rate or a longer "
                "--num_warmup_steps may help; the checkpoints before are kept). Received: loss "
                f"{row['loss']:.4g}, gradient norm {row['gradient_norm']:.4g} at step {step}, "
                f"learning rate {row['learning_rate']:.3g}"
            )


def _step_of(line):
    """The step of a line of the log; 0 if it is damaged."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return 0
