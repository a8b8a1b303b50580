"""Measures a fine-tuned model on one split by the metrics of its task."""

from bert_tf.summaries.reporter import NO_ILLUSTRATIONS


class TaskEvaluator:
    """Measures a model on a split of its downstream task, whenever it is asked to.

    Args:
        task: a `finetuning.downstream_task.DownstreamTask`.
        predictor: a `Predictor` of the model.
        examples: the split's `Examples`.
        batch_size: examples per batch, over all devices.
        boundaries: the lengths that batches may have.

    Attributes:
        outputs: the model's outputs in the last evaluation.
    """

    def __init__(self, task, predictor, examples, batch_size, boundaries):
        self.task = task
        self.predictor = predictor
        self.examples = examples
        self.batch_size = batch_size
        self.boundaries = boundaries
        self.outputs = None

    @property
    def best_by(self):
        """(name, higher is better): the result that chooses the best checkpoint."""
        return self.task.best_by

    def run(self):
        """Computes the metrics as "eval_NAME", with "loss" if the task has one, and "examples"."""
        self.outputs = self.predictor(self.examples, self.batch_size, self.boundaries)
        results = self.task.measure(self.predictor.model, self.examples, self.outputs)
        named = {f"eval_{name}": value for name, value in results.items()}
        loss = {"loss": results["loss"]} if "loss" in results else {}
        return {**named, **loss, "examples": len(self.examples.lengths)}

    def illustrations(self):
        """The plots and texts of the last evaluation."""
        if self.outputs is None:
            return NO_ILLUSTRATIONS
        return self.task.illustrations(self.predictor.model, self.examples, self.outputs)
