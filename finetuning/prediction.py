"""Runs a fine-tuned model over examples, those of about equal length together.

Legend: B examples that a replica computes together.
"""

import keras
import numpy as np
import tensorflow as tf

from bert_common.progress import progress
from bert_tf.training.distribution import is_chief, worker_count
from bert_tf.training.interruptions.out_of_memory import explain_out_of_memory
from bert_tf.training.step import graph
from bert_tf.training.xla import Compiled


class Predictor:
    """Computes a model's outputs without dropout; what is compiled is compiled once.

    Every worker computes all examples, on its own replicas: what comes out is the same in each.

    Args:
        model: a model, made in the strategy's scope.
        strategy: a `tf.distribute.Strategy`.
        xla: "auto", "on" or "off": whether XLA compiles the forward pass.
    """

    def __init__(self, model, strategy, xla="auto"):
        self.model = model
        self.strategy = strategy
        self.weights = model.trainable_variables
        self.run = Compiled(self._make, xla, model.compute_dtype, "the prediction")

    def __call__(self, examples, batch_size, boundaries):
        """Computes the outputs for all examples.

        Args:
            examples: an `Examples`.
            batch_size: examples at a time, over all devices.
            boundaries: the lengths that batches may have, ascending, the last one no shorter
                than any example.

        Returns:
            A dict: the output's name -> a list with an array for every example, in order.

        Raises:
            InputError: more memory needed than there is.
        """
        replicas = self.strategy.num_replicas_in_sync // worker_count(self.strategy)
        size = -(-batch_size // replicas)
        # The longest first: what does not fit into memory shows at once.
        order = np.argsort(-examples.lengths, kind="stable")
        found = [None] * len(order)
        remedies = ["a lower --eval_batch_size or --predict_batch_size"]
        with (
            progress("predicting", len(order), "examples", shown=is_chief(self.strategy)) as bar,
            explain_out_of_memory(remedies, {"batch_size": size * replicas}),
        ):
            for start in range(0, len(order), size * replicas):
                numbers = order[start : start + size * replicas]
                longest = int(examples.lengths[numbers[0]])
                length = boundaries[int(np.searchsorted(boundaries, longest))]
                whole = np.resize(numbers, size * replicas)  # the last batch is filled up
                outputs = self._outputs(examples, np.split(whole, replicas), length)
                for i, number in enumerate(numbers):
                    found[number] = {name: values[i] for name, values in outputs.items()}
                bar.update(len(numbers))
        return {name: [outputs[name] for outputs in found] for name in found[0]}

    def _outputs(self, examples, parts, length):
        """The outputs for the examples of each replica, all of them one after another."""
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
