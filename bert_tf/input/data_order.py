"""Keeps track of which examples come next in a run, even if it resumes with other settings."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # it imports this module
    from bert_tf.training.state import TrainingState


class DataOrder(NamedTuple):
    """What decides the order of examples; a checkpoint holds it."""

    step: int  # updates made before the order's first batch; 0 for a run that begins
    position: int  # where that batch begins in the endless order of examples
    batch_size: int  # examples of an update
    seed: int  # of the shuffle
    examples: int  # how many there are
    boundaries: int  # the `number_of_boundaries` of the lengths that batches are cut to
    data: int  # a number that differs if the examples, or their order, do

    def examples_before(self, step: int) -> int:
        """Counts the examples that the updates up to `step` have seen."""
        return self.position + (step - self.step) * self.batch_size

    def changes(self, *settings: int) -> list[str]:
        """The settings that differ, in words; `settings` are the fields from batch_size to data."""
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
    """A number for the lengths that batches are cut to: 0 if none is cut."""
    if len(boundaries) < 2:
        return 0
    return int(hashlib.sha256(json.dumps([*map(int, boundaries)]).encode()).hexdigest()[:12], 16)


def _on_or_off(number):
    return "on" if number else "off"


def continue_order(state: "TrainingState", *settings: int) -> tuple[int, int]:
    """Sets the order of a restored state; `settings` as for `DataOrder.changes`.

    If the checkpoint has other settings, it warns, and a new order begins at the position that was
    reached. Returns the step and the position at which the order begins.
    """
    # None: a run that begins, or that continues one of Google's code.
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
    """A hexadecimal number that differs if the names, the sizes or the order of files do."""
    sizes = [(os.path.basename(path), os.path.getsize(path)) for path in files]
    return hashlib.sha256(json.dumps(sizes).encode()).hexdigest()[:12]
