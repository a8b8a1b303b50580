"""Declares what the training loop expects of its data, of its evaluator."""

from typing import TYPE_CHECKING, Protocol

import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.summaries.reporter import Illustrations

if TYPE_CHECKING:  # the first imports this module
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.state import TrainingState


class TrainingData(Protocol):
    """Examples in an order that seed and position decide, so that a run can be resumed anywhere.

    For example `bert_tf.input.training_records.TrainingRecords`, `finetuning.examples.Examples`.
    """

    def in_order(self, state: "TrainingState", config: "TrainingConfig") -> "TrainingData":
        """The data in the order of a run that begins or resumes; sets `state.order`."""

    def batches(
        self, strategy: tf.distribute.Strategy, config: "TrainingConfig", start_step: int
    ) -> tf.distribute.DistributedDataset:
        """The endless batches after `start_step` updates, distributed to the replicas."""

    def names(self, config: "TrainingConfig", step: int) -> list[str]:
        """The names of the examples in the batch that follows `step` batches."""

    def explain_failure(self) -> InputError | None:
        """An error that names the damaged record TensorFlow failed on; None if there is none."""


class HeldOutEvaluator(Protocol):
    """Evaluates the model on held-out examples."""

    def run(self) -> dict[str, float]:
        """Evaluates once; returns the results by name."""

    def score(self, results: dict[str, float]) -> float:
        """Rates the results of `run`: the checkpoint of the highest score is the best."""

    def illustrations(self) -> Illustrations:
        """Texts and images for TensorBoard, of the last evaluation."""
