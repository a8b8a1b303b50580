"""Which examples come next: the order of a run, also where it goes on with other settings."""

import hashlib
import json
import os
import warnings
from typing import NamedTuple

# Of settings that older checkpoints do not hold.
UNKNOWN = -1


class DataOrder(NamedTuple):
    """What decides the order of examples; a checkpoint holds it.

    The batch after `step` updates begins at `position` of the endless order of examples, those
    after it follow. A run begins at (0, 0). Where it goes on with other settings an order begins
    anew, at the position that was reached.

    Attributes:
        step: updates made before the order's first batch.
        position: examples seen before it.
        batch_size: examples of an update.
        seed: what shuffles.
        examples: how many there are.
        boundaries: the `number_of_boundaries` of the lengths that examples are shared out by.
        data: a number that differs where the examples, or their order, do.
    """

    step: int
    position: int
    batch_size: int
    seed: int
    examples: int
    boundaries: int = UNKNOWN
    data: int = UNKNOWN

    def examples_before(self, step):
        """How many examples were seen in the updates up to `step`."""
        return self.position + (step - self.step) * self.batch_size

    def changes(self, *settings):
        """What differs in other settings, in words; `settings` are the fields from batch_size."""
        was, now = self, DataOrder(self.step, self.position, *settings)
        named = {
            "--train_batch_size": (was.batch_size, now.batch_size),
            "--random_seed": (was.seed, now.seed),
            "the number of examples": (was.examples, now.examples),
            "--bucket_boundaries": (_on_or_off(was.boundaries), _on_or_off(now.boundaries)),
        }
        found = [
            f"{name} was {old} and is {new}"
            for name, (old, new) in named.items()
            if old not in (new, None)
        ]
        if was.boundaries > 0 and now.boundaries > 0 and was.boundaries != now.boundaries:
            found.append("the lengths of --bucket_boundaries are not the same")
        if was.data not in (now.data, UNKNOWN) and was.examples == now.examples:
            found.append("the training data, or its order, is not the same")
        return found

    def continued(self, step, *settings):
        """The order of a run that goes on after `step`: where it began if nothing differs."""
        if self.changes(*settings):
            return DataOrder(step, self.examples_before(step), *settings)
        return DataOrder(self.step, self.position, *settings)


def number_of_boundaries(boundaries):
    """A number for the lengths that batches may have: 0 where examples come as they are.

    Older checkpoints have 1 for any lengths: their examples were sorted by exact length.
    """
    if len(boundaries) < 2:
        return 0
    return int(hashlib.sha256(json.dumps([*map(int, boundaries)]).encode()).hexdigest()[:12], 16)


def _on_or_off(number):
    return None if number == UNKNOWN else "on" if number else "off"


def take_over_order(state, *settings):
    """Sets the order of a run that begins, or goes on from a checkpoint.

    Where settings are not those of the checkpoint a warning says so, and the order is another
    one, from the position that was reached.

    Args:
        state: the restored `TrainingState`.
        *settings: those of `DataOrder`, from batch_size on.

    Returns:
        The step and the position at which the order begins.
    """
    before = state.order or DataOrder(0, 0, *settings)
    state.order = before.continued(state.step, *settings)
    changes = before.changes(*settings)
    if changes:
        warnings.warn(
            f"{'; '.join(changes)}: the order of examples is another one from step {state.step} "
            f"on, after the {state.order.position:,} examples seen so far",
            stacklevel=3,
        )
    return state.order[:2]


def sizes_of(files):
    """A short text (hexadecimal) that differs where names or sizes of files, or their order, do."""
    sizes = [(os.path.basename(path), os.path.getsize(path)) for path in files]
    return hashlib.sha256(json.dumps(sizes).encode()).hexdigest()[:12]
