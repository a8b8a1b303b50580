"""Declares what the training loop expects of its data, of its evaluator."""

from typing import Protocol

from bert_common.errors import InputError
from bert_tf.summaries.reporter import Illustrations


class TrainingData(Protocol):
    """Examples in an order that seed and position decide, so that a run can be resumed anywhere.

    For example `bert_tf.input.training_records.TrainingRecords`, `finetuning.examples.Examples`.
    """

    def in_order(self, state, config) -> "TrainingData":
        """The data in the order of a run that begins or resumes; sets `state.order`.

        `state` is the restored `TrainingState`, `config` the `TrainingConfig`.
        """

    def batches(self, strategy, config, start_step):
        """The endless batches after `start_step` updates, distributed to the replicas."""

    def names(self, config, step) -> list[str]:
        """The names of the examples in the batch that follows `step` batches."""

    def explain_failure(self) -> InputError | None:
        """An error that names the damaged record TensorFlow failed on; None if there is none."""


class HeldOutEvaluator(Protocol):
    """Evaluates the model on held-out examples."""

    def run(self) -> dict[str, float]:
        """Evaluates once; returns the results by name."""

    def score(self, results: dict[str, float]) -> float:
        """How good the results of `run` are: the checkpoint of the highest score is the best."""

    def illustrations(self) -> Illustrations:
        """Texts and images for TensorBoard, of the last evaluation."""
