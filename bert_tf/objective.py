"""What a training step makes smaller: losses as sums that add up however a batch is split."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Objective:
    """What a model is trained for; the attribute `objective` of every model that is trained.

    Attributes:
        weights: the name of each loss -> the feature with the weight of each of its predictions.
        sums: what is added up of each loss: "loss", "weight", and more.
        loss_sums: (outputs of the model, batch) -> a dict of scalars, for each loss NAME and
            each of `sums` NAME_SUM.
        denominators: (NAME -> sum of weights over the global batch) -> NAME -> what the sum of
            that loss is divided by.
    """

    weights: dict
    sums: tuple
    loss_sums: Callable
    denominators: Callable
