"""Judges a fine-tuned model by its task's metrics."""

from bert_tf.summaries.reporter import NO_ILLUSTRATIONS


class Evaluator:
    """Measures the model on one split as often as it is asked to.

    Args:
        task: what the model learns, for example a `Classification`.
        predictor: a `Predictor` of the model.
        examples: the split's `Examples`.
        batch_size: examples at a time, over all devices.
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
        """The result that the best checkpoint is chosen by, and whether more of it is better."""
        return self.task.best_by

    def run(self):
        """The metrics with "examples", and "loss" if there is one among them."""
        self.outputs = self.predictor(self.examples, self.batch_size, self.boundaries)
        results = self.task.measure(self.predictor.model, self.examples, self.outputs)
        named = {f"eval_{name}": value for name, value in results.items()}
        loss = {"loss": results["loss"]} if "loss" in results else {}
        return {**named, **loss, "examples": len(self.examples.lengths)}

    def illustrations(self):
        """Pictures and texts of the last evaluation."""
        if self.outputs is None:
            return NO_ILLUSTRATIONS
        return self.task.illustrations(self.predictor.model, self.examples, self.outputs)
