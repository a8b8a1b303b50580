"""Computes a fine-tuned model's outputs for examples and the metrics of its task.

Shapes: B examples of a replica.
"""

import dataclasses
import math
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from bert_tf.encoder import EncoderModel
from bert_tf.summaries.reporter import Illustrations
from bert_tf.training.distribution import is_chief, worker_count
from bert_tf.training.interruptions.out_of_memory import explain_out_of_memory
from bert_tf.training.replicas import graph
from bert_tf.training.xla import Compiled
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples, Outputs


class Predictor:
    """Computes a model's outputs without dropout; each length is compiled once.

    Every worker computes all examples on its own replicas, so that all workers have the same
    outputs. `model` was made in the scope of `strategy`; `xla` is "auto", "on" or "off".
    """

    def __init__(
        self, model: EncoderModel, strategy: tf.distribute.Strategy, xla: str = "auto"
    ) -> None:
        self.model = model
        self.strategy = strategy
        self.weights = model.trainable_variables
        self.run = Compiled(self._make, xla, model.compute_dtype, "the prediction")

    def __call__(self, examples: Examples, batch_size: int, boundaries: Sequence[int]) -> Outputs:
        """Computes the outputs for all examples: name -> one array per example, in order.

        Args:
            batch_size: examples per batch, over all devices.
            boundaries: the lengths that batches may have, ascending; no example is longer than
                the last one.
        """
        replicas = self.strategy.num_replicas_in_sync // worker_count(self.strategy)
        size = -(-batch_size // replicas) * replicas

        def run(indices, longest):
            length = boundaries[int(np.searchsorted(boundaries, longest))]
            padded = np.resize(indices, size)  # the last batch repeats examples
            return self._run_on(examples, np.split(padded, replicas), length)

        remedies = ["a lower --eval_batch_size or --predict_batch_size"]
        with explain_out_of_memory(remedies, {"batch_size": size}):
            return examples.outputs(run, size, shown=is_chief(self.strategy))

    def _run_on(self, examples, parts, length):
        """Returns the outputs for the examples of all replicas, in the order of the replicas."""
        batches = [
            {name: tf.constant(value) for name, value in examples.make_batch(part, length).items()}
            for part in parts
        ]
        if len(batches) == 1:
            return {name: value.numpy() for name, value in self.run(batches[0]).items()}
        batch = self.strategy.experimental_distribute_values_from_function(
            lambda context: batches[context.replica_id_in_sync_group % len(batches)]
        )
        local = self.strategy.experimental_local_results
        return {
            name: np.concatenate([part.numpy() for part in local(value)])
            for name, value in self.run(batch).items()
        }

    def _make(self, compilation):
        forward = graph(self._forward, jit_compile=compilation.whole)

        def replica(batch):
            return forward([v.value for v in self.weights], batch)

        return graph(lambda batch: self.strategy.run(replica, args=(batch,)))

    def _forward(self, weights, batch):
        state = [*zip(self.weights, weights, strict=True)]
        with keras.StatelessScope(state_mapping=state):
            return self.model(batch, training=False)


@dataclasses.dataclass(eq=False)
class TaskEvaluator:
    """Measures a model on a split of its downstream task."""

    task: DownstreamTask
    predictor: Predictor  # of the model
    examples: Examples  # of the split
    batch_size: int  # examples per batch, over all devices
    boundaries: tuple[int, ...]  # the lengths that batches may have
    # The model's outputs in the last evaluation.
    outputs: Outputs = dataclasses.field(init=False, repr=False)

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
