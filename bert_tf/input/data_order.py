"""Tracks which examples come next in a run, even if it resumes with different settings."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # they import this module
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.state import TrainingState


class DataOrder(NamedTuple):
    """The numbers that determine the order of examples, stored in checkpoints."""

    step: int  # the number of updates before the order's first batch; 0 for a new run
    position: int  # the start of that batch in the endless order of examples
    batch_size: int  # examples per update
    seed: int  # the seed of the shuffle
    examples: int  # the number of examples
    boundaries: int  # the `number_of_boundaries` of the lengths to which batches are cut
    data: int  # a number that differs if the examples or their order differ

    def examples_before(self, step: int) -> int:
        """Counts the examples that the updates up to `step` have seen."""
        return self.position + (step - self.step) * self.batch_size

    def changes(self, *settings: int) -> list[str]:
        """Describes the settings that differ; `settings` are the fields from batch_size to data."""
        was, now = self, DataOrder(self.step, self.position, *settings)
        named = {
            "--train_batch_size": (was.batch_size, now.batch_size),
            "--random_seed": (was.seed, now.seed),
            "the number of examples": (was.examples, now.examples),
            "--bucket_boundaries": (_on_or_off(was.boundaries), _on_or_off(now.boundaries)),
        }
        differences = [
            f"{name} was {old} and is {new}" for name, (old, new) in named.items() if old != new
        ]
        if was.boundaries > 0 and now.boundaries > 0 and was.boundaries != now.boundaries:
            differences.append("the lengths of --bucket_boundaries are not the same")
        if was.data != now.data and was.examples == now.examples:
            differences.append("the training data, or its order, is not the same")
        return differences


def number_of_boundaries(boundaries: Sequence[int]) -> int:
    """Returns a number that identifies the lengths to which batches are cut; 0 if none is cut."""
    if len(boundaries) < 2:
        return 0
    return int(hashlib.sha256(json.dumps([*map(int, boundaries)]).encode()).hexdigest()[:12], 16)


def _on_or_off(number):
    return "on" if number else "off"


def continue_order(
    state: "TrainingState", config: "TrainingConfig", examples: int, data: int
) -> tuple[int, int]:
    """Sets the order of a restored state; `examples` and `data` as in `DataOrder`.

    If the checkpoint has different settings, it warns and starts a new order at the position that
    was reached. Returns the step and the position at which the order begins.
    """
    boundaries = number_of_boundaries(config.bucket_boundaries)
    settings = config.train_batch_size, config.seed, examples, boundaries, data
    # None for a new run, and for a run that continues one of Google's code.
    order = state.order or DataOrder(0, 0, *settings)
    changes = order.changes(*settings)
    if changes:
        order = DataOrder(state.step, order.examples_before(state.step), *settings)
        warnings.warn(
            f"{'; '.join(changes)}: the order of examples changes at step {state.step}, after the "
            f"{order.position:,} examples seen so far",
            stacklevel=3,
        )
    state.order = order
    return order[:2]


def sizes_of(files: Iterable[str]) -> str:
    """Returns a hexadecimal number that differs if the files' names, sizes or order differ."""
    sizes = [(os.path.basename(path), os.path.getsize(path)) for path in files]
    return hashlib.sha256(json.dumps(sizes).encode()).hexdigest()[:12]
