"""Which examples come next: the order of a run, also where it goes on with other settings."""

from typing import NamedTuple


class DataOrder(NamedTuple):
    """What decides the order of examples; a checkpoint holds it.

    The batch behind `step` updates begins at `position` of the endless order of records, those
    after it follow. A run begins at (0, 0). Where it goes on with another batch size, seed or
    number of records an order begins anew, at the position that was reached.

    Attributes:
        step: updates made before the order's first batch.
        position: examples seen before it.
        batch_size: examples of an update.
        seed: what shuffles.
        records: how many there are.
    """

    step: int
    position: int
    batch_size: int
    seed: int
    records: int

    def examples_before(self, step):
        """How many examples were seen in the updates up to `step`."""
        return self.position + (step - self.step) * self.batch_size

    def continued(self, step, batch_size, seed, records):
        """The order of a run that goes on behind `step`: this one if nothing differs."""
        settings = (batch_size, seed, records)
        if settings == self[2:]:
            return self
        return DataOrder(step, self.examples_before(step), *settings)
