"""Declares what a model is trained for: the features its losses read, their sums and their names.

A loss is a sum divided by a sum of weights, so that it adds up however a batch is split.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

# How the names of features of a whole global batch begin, and the feature that says which of its
# rows a part is; see `Objective.shared`.
WHOLE, OWN_ROWS = "all_", "own_rows"


@dataclasses.dataclass(frozen=True)
class Loss:
    """One of the losses that a model is trained to minimize."""

    labels: tuple[str, ...]  # the features that hold what is to be predicted
    # The feature with the weight of every prediction; 0 for one that only fills a batch.
    weights: str
    # What is added up over the predictions: "loss", "weight", and "correct" if a prediction is
    # either right or wrong.
    sums: tuple[str, ...] = ("loss", "correct", "weight")
    epsilon: float = 0.0  # added to the sum of weights that the loss is divided by
    factor: float = 1.0  # what the mean is multiplied by in the total loss
    # Its name in eval_results.txt and on TensorBoard; None for its key in `Objective.losses`.
    reported_as: str | None = None
    # Its curves on TensorBoard during training: "loss" or "accuracy" -> description.
    curves: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class SoftLoss:
    """How far the outputs of a model are from the outputs of another one, which teaches it."""

    of: str  # the loss of the same predictions, whose labels, weights and epsilon it has
    # (outputs, the teacher's outputs, temperature) -> the distance of every prediction; of every
    # class too, where an example has several independent ones.
    losses: Callable[[Mapping[str, Any], Mapping[str, Any], float], Any]


@dataclasses.dataclass(frozen=True)
class Share:
    """A result beside the losses: one of their sums over another one."""

    part: str  # the names of the sums in the metrics, for example "masked_lm_correct"
    whole: str
    meaning: str  # the description of its curve


@dataclasses.dataclass(frozen=True)
class Objective:
    """The attribute `objective` of every model that is trained."""

    # Name -> `Loss`. The total loss is the sum of their means, each times its factor. The best
    # checkpoint of a pre-training is the one whose first loss is the lowest.
    losses: dict[str, Loss]
    # (outputs of the model, batch) -> a dict of scalars: NAME_SUM for every loss NAME that the
    # batch has labels of, and each of its `sums`.
    loss_sums: Callable[[Any, Mapping[str, Any]], dict[str, Any]]
    # The loss with one prediction per example: their number is what eval_results.txt calls
    # "examples". None: that is the number of records.
    examples: str | None = None
    # Its name in eval_results.txt -> `Share`.
    shares: dict[str, Share] = dataclasses.field(default_factory=dict)
    # Outputs of the model, or features, [B, ...] each, that the loss of every part of a global
    # batch reads of all of it, as a loss that contrasts examples does. Where there are several
    # parts, `loss_sums` finds them in the batch as "all_NAME" [G, ...], without a gradient, and
    # under `OWN_ROWS` [B] which of these rows the part's own examples are.
    shared: tuple[str, ...] = ()
    # (outputs of the model, batch) -> ids, losses and weights of the masked pieces, [B, P] each;
    # None where none are predicted from the outputs of the model's encoder. Token dropping reads
    # them.
    piece_losses: Callable[[Any, Mapping[str, Any]], tuple[Any, Any, Any]] | None = None
    # What it can learn of another model's outputs (`bert_tf.distillation`); None for nothing.
    soft: SoftLoss | None = None

    def reported_name(self, name: str) -> str:
        """Returns the name of the loss NAME in eval_results.txt and on TensorBoard."""
        return self.losses[name].reported_as or name

    def weight_sums(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The sum of the weights of each loss that a part of a batch has labels for."""
        dtype = keras.backend.result_type(keras.config.floatx(), "float32")
        return {
            name: ops.sum(ops.cast(batch[loss.weights], dtype))
            for name, loss in self.losses.items()
            if all(feature in batch for feature in (*loss.labels, loss.weights))
        }

    def denominators(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """What divides the sum of each loss in the total loss: (weights + epsilon) / factor.

        `weights` are what `weight_sums` returned, added up over the parts of the global batch.
        """
        losses = self.losses
        return {n: (weight + losses[n].epsilon) / losses[n].factor for n, weight in weights.items()}


def total_loss(sums: Mapping[str, Any], denominators: Mapping[str, Any]) -> Any:
    """The share of one part of a global batch in its loss; the shares of all parts add up.

    The sums are of the part, the denominators of the global batch.
    """
    return sum(sums[f"{name}_loss"] / denominators[name] for name in denominators)
