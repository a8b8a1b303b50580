"""Declares the interfaces of the training loop's data and evaluator."""

from typing import TYPE_CHECKING, Protocol

import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.summaries.reporter import Illustrations

if TYPE_CHECKING:  # bert_tf.training.loop imports this module
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.state import TrainingState


class TrainingData(Protocol):
    """Examples whose order depends only on seed and position, so that any run can be resumed.

    For example `bert_tf.input.training_records.TrainingRecords`, `finetuning.examples.Examples`.
    """

    def in_order(self, state: "TrainingState", config: "TrainingConfig") -> "TrainingData":
        """Returns the data in the order of a new or resumed run, and sets `state.order`."""

    def batches(
        self, strategy: tf.distribute.Strategy, config: "TrainingConfig", start_step: int
    ) -> tf.distribute.DistributedDataset:
        """Returns the endless batches after `start_step` updates, distributed to the replicas."""

    def names(self, config: "TrainingConfig", step: int) -> list[str]:
        """Returns the names of the examples in the batch after `step` batches."""

    def explain_failure(self) -> InputError | None:
        """Returns an error that names the damaged record TensorFlow failed on, or None."""


class HeldOutEvaluator(Protocol):
    """Evaluates the model on held-out examples."""

    def run(self) -> dict[str, float]:
        """Evaluates once and returns the results by name."""

    def score(self, results: dict[str, float]) -> float:
        """Rates the results of `run`; the checkpoint with the highest score is the best."""

    def illustrations(self) -> Illustrations:
        """Returns texts and images of the last evaluation for TensorBoard."""
