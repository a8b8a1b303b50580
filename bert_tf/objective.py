"""Declares a model's training objective.

A loss is a sum divided by a sum of weights, so that it adds up however a batch is split.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

# The prefix of the names of a whole global batch's features, and the feature that says which of its
# rows form a part; see `Objective.shared`.
WHOLE, OWN_ROWS = "all_", "own_rows"


@dataclasses.dataclass(frozen=True)
class Loss:
    """One of the losses that a model is trained to minimize."""

    labels: tuple[str, ...]  # the features that hold the labels
    # The feature with the weight of every prediction; 0 for a prediction that only fills a batch.
    weights: str
    # The sums over the predictions: "loss", "weight", and "correct" if a prediction is either right
    # or wrong.
    sums: tuple[str, ...] = ("loss", "correct", "weight")
    epsilon: float = 0.0  # added to the sum of weights that divides the loss
    factor: float = 1.0  # multiplies the mean in the total loss
    # The name in eval_results.txt and on TensorBoard; None for the key in `Objective.losses`.
    reported_as: str | None = None
    # The curves on TensorBoard during training: "loss" or "accuracy" -> description.
    curves: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class SoftLoss:
    """The distance of a student model's outputs from its teacher's outputs."""

    of: str  # the loss of the same predictions; its labels, weights and epsilon are used
    # (outputs, the teacher's outputs, temperature) -> the distance of every prediction, or of every
    # class if an example has several independent classes.
    losses: Callable[[Mapping[str, Any], Mapping[str, Any], float], Any]


@dataclasses.dataclass(frozen=True)
class Share:
    """An additional result: the ratio of two of the losses' sums."""

    part: str  # the names of the sums in the metrics, for example "masked_lm_correct"
    whole: str
    meaning: str  # the description of its curve


@dataclasses.dataclass(frozen=True)
class Objective:
    """The losses and results of a model, held by its attribute `objective`."""

    # Name -> `Loss`. The total loss is the sum of their means, each times its factor. The best
    # checkpoint of a pre-training is the one with the lowest first loss.
    losses: dict[str, Loss]
    # (outputs of the model, batch) -> a dict of scalars: NAME_SUM for every loss NAME with labels
    # in the batch and each of its `sums`.
    loss_sums: Callable[[Any, Mapping[str, Any]], dict[str, Any]]
    # The loss with one prediction per example; eval_results.txt reports their number as "examples".
    # None: it reports the number of records.
    examples: str | None = None
    # Name in eval_results.txt -> `Share`.
    shares: dict[str, Share] = dataclasses.field(default_factory=dict)
    # Outputs of the model or features, [B, ...] each, that the loss of every part of a global batch
    # needs from the whole batch, such as a loss that contrasts examples. If there are several
    # parts, the batch that `loss_sums` gets holds them as "all_NAME" [G, ...], without a gradient,
    # and under `OWN_ROWS` [B] the numbers of the part's own rows in them.
    shared: tuple[str, ...] = ()
    # (outputs of the model, batch) -> ids, losses and weights of the masked tokens, [B, P] each,
    # for token dropping; None if no masked tokens are predicted from the encoder's outputs.
    piece_losses: Callable[[Any, Mapping[str, Any]], tuple[Any, Any, Any]] | None = None
    # The distance from a teacher's outputs (`bert_tf.distillation`); None if there is none.
    soft: SoftLoss | None = None

    def reported_name(self, name: str) -> str:
        """Returns the name of the loss `name` in eval_results.txt and on TensorBoard."""
        return self.losses[name].reported_as or name

    def weight_sums(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the sum of weights of each loss for which `batch` has labels."""
        dtype = keras.backend.result_type(keras.config.floatx(), "float32")
        return {
            name: ops.sum(ops.cast(batch[loss.weights], dtype))
            for name, loss in self.losses.items()
            if all(feature in batch for feature in (*loss.labels, loss.weights))
        }

    def denominators(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the divisor of each loss's sum in the total loss, (weights + epsilon) / factor.

        `weights` are the `weight_sums`, summed over the parts of the global batch.
        """
        losses = self.losses
        return {n: (weight + losses[n].epsilon) / losses[n].factor for n, weight in weights.items()}


def total_loss(sums: Mapping[str, Any], denominators: Mapping[str, Any]) -> Any:
    """Computes one part's contribution to a global batch's loss, the sum over all parts.

    The sums are the part's, the denominators the global batch's.
    """
    return sum(sums[f"{name}_loss"] / denominators[name] for name in denominators)


def weighted_sums(name: str, losses: Any, weights: Any, correct: Any = None) -> dict[str, Any]:
    """Returns sums from which loss and accuracy follow, no matter how a batch is split.

    `losses`, `weights` and `correct` have the same shape. The sums are NAME_loss, NAME_correct
    unless `correct` is None, and NAME_weight.
    """
    weights = ops.cast(weights, losses.dtype)
    sums = {f"{name}_loss": ops.sum(losses * weights)}
    if correct is not None:
        sums[f"{name}_correct"] = ops.sum(ops.cast(correct, losses.dtype) * weights)
    return {**sums, f"{name}_weight": ops.sum(weights)}
