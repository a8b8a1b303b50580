"""Measures a fine-tuned model on one split by the metrics of its task."""

import dataclasses
import math

from bert_tf.summaries.reporter import Illustrations
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples, Outputs
from finetuning.prediction import Predictor


@dataclasses.dataclass(eq=False)
class TaskEvaluator:
    """Measures a model on a split of its downstream task."""

    task: DownstreamTask
    predictor: Predictor  # of the model
    examples: Examples  # of the split
    batch_size: int  # examples per batch, over all devices
    boundaries: tuple[int, ...]  # the lengths that batches may have
    outputs: Outputs = dataclasses.field(
        init=False, repr=False
    )  # the model's outputs in the last evaluation

    def run(self) -> dict[str, float]:
        """Computes the metrics as "eval_NAME", "loss" if the task has one, and "examples"."""
        self.outputs = self.predictor(self.examples, self.batch_size, self.boundaries)
        results = self.task.measure(self.predictor.model, self.examples, self.outputs)
        named = {f"eval_{name}": value for name, value in results.items()}
        loss = {"loss": results["loss"]} if "loss" in results else {}
        return {**named, **loss, "examples": len(self.examples.lengths)}

    def score(self, results: dict[str, float]) -> float:
        """Returns the result `DownstreamTask.best_by`, negated if lower is better.

        Returns -inf if the results lack it: a run may resume with data that have other metrics.
        """
        name, higher_is_better = self.task.best_by
        if name not in results:
            return -math.inf
        return results[name] if higher_is_better else -results[name]

    def illustrations(self) -> Illustrations:
        """Returns the plots and texts of the last evaluation."""
        return self.task.illustrations(self.predictor.model, self.examples, self.outputs)
