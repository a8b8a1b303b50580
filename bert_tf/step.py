"""One training step, one evaluation step, the same mathematics on any number of devices.

The forward and the backward pass are one XLA computation on every replica: plain tensors
in, plain tensors out, no variable captured. Sums, not means, leave it; they are added up
over the replicas, then the gradient is clipped by the norm of the whole, then the weights
are updated.
"""

import keras
import tensorflow as tf

from bert_tf.optimization import clip_by_global_norm
from bert_tf.pretraining import denominators, loss_sums, total_loss

# Which weights of a batch each loss is divided by.
WEIGHTS = {"masked_lm": "masked_lm_weights", "next_sentence": "next_sentence_weights"}


class TrainingStep:
    """Updates the model by one global batch.

    Args:
        model: a `PretrainingModel`, made in the strategy's scope.
        optimizer: an optimizer of `bert_tf.optimization`, made in the strategy's scope and
            built with the model's trainable variables.
        strategy: a `tf.distribute.Strategy`.
        seed: with the step and the replica it decides what dropout drops.
        xla: whether the forward and backward pass is compiled by XLA.
    """

    def __init__(self, model, optimizer, strategy, seed=0, xla=True):
        self.model = model
        self.optimizer = optimizer
        self.strategy = strategy
        self.seed = seed
        self.weights = model.trainable_variables
        # The states of the dropout layers' seed generators.
        self.seed_states = model.non_trainable_variables
        self.forward_backward = tf.function(self._forward_backward, jit_compile=xla)
        self.run = tf.function(self._run)

    def __call__(self, batch):
        """Runs the step.

        Args:
            batch: features of the global batch, as `strategy` distributes them.

        Returns:
            A dict of scalars: the sums of `loss_sums` over the global batch, "loss",
            "gradient_norm" (before clipping), "learning_rate".
        """
        return self.run(batch)

    def _run(self, batch):
        metrics = self.strategy.run(self._replica_step, args=(batch,))
        # Every replica returns the same numbers: they were reduced inside.
        return {
            name: self.strategy.experimental_local_results(value)[0]
            for name, value in metrics.items()
        }

    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()
        step = self.optimizer.iterations.value
        divisors = denominators(_all_reduce(context, weight_sums(batch)))
        sums, gradients = self.forward_backward(
            [v.value for v in self.weights],
            self._seeds(step, context.replica_id_in_sync_group),
            batch,
            divisors,
        )
        # A weight that the loss does not depend on has no gradient: neither update nor decay.
        pairs = [(g, v) for g, v in zip(gradients, self.weights, strict=True) if g is not None]
        sums, gradients = _all_reduce(context, (sums, [g for g, _ in pairs]))
        gradients, norm = clip_by_global_norm(gradients)
        rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        variables = [v for _, v in pairs]
        context.merge_call(self._update, args=(gradients, variables, rate))
        return {
            **sums,
            "loss": total_loss(sums, divisors),
            "gradient_norm": norm,
            "learning_rate": rate,
        }

    def _forward_backward(self, weights, seeds, batch, divisors):
        """The loss sums of this replica's part, and its share of the gradient.

        The model itself is called, not `stateless_call`: that would not hand `training` on
        to nested layers.
        """
        state = [*zip(self.weights, weights, strict=True)]
        state += [*zip(self.seed_states, seeds, strict=True)]
        with tf.GradientTape() as tape, keras.StatelessScope(state_mapping=state):
            tape.watch(weights)
            sums = loss_sums(self.model(batch, training=True), batch)
            loss = total_loss(sums, divisors)
        gradients = tape.gradient(loss, weights)
        # convert_to_tensor makes the gradient of a table that was gathered from dense.
        return sums, [None if g is None else tf.convert_to_tensor(g) for g in gradients]

    def _seeds(self, step, replica):
        """A fresh seed for every dropout layer, a function of (seed, step, replica)."""
        seed = tf.constant([self.seed, 0], tf.int32)
        for number in (step, replica):
            seed = tf.random.experimental.stateless_fold_in(seed, tf.cast(number, tf.int32))
        count = len(self.seed_states)
        seeds = tf.random.stateless_uniform(
            [count, 2], seed, minval=None, maxval=None, dtype=tf.uint32
        )
        return tf.unstack(seeds)

    def _update(self, strategy, gradients, variables, rate):
        """Applies reduced gradients; in the cross-replica context, once for all replicas.

        Not `optimizer.apply`: it would add the gradients up over the replicas once more.
        """

        def update_one(variable, gradient, rate):
            self.optimizer.update_step(gradient, variable, rate)

        for gradient, variable in zip(gradients, variables, strict=True):
            strategy.extended.update(variable.value, update_one, args=(gradient, rate), group=False)
        self.optimizer.iterations.assign_add(1)


class EvaluationStep:
    """The loss sums of a global batch, without dropout.

    Args:
        model: a `PretrainingModel`, made in the strategy's scope.
        strategy: a `tf.distribute.Strategy`.
    """

    def __init__(self, model, strategy):
        self.model = model
        self.strategy = strategy
        self.run = tf.function(self._run)

    def __call__(self, batch):
        """Returns the scalars of `loss_sums` over the global batch."""
        return self.run(batch)

    def _run(self, batch):
        sums = self.strategy.run(self._replica_step, args=(batch,))
        return {
            name: self.strategy.experimental_local_results(value)[0] for name, value in sums.items()
        }

    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()
        return _all_reduce(context, loss_sums(self.model(batch, training=False), batch))


def weight_sums(batch):
    """The sum of the weights of each loss in one part of a batch, in float32 or float64."""
    dtype = keras.backend.result_type(keras.config.floatx(), "float32")
    return {
        name: tf.reduce_sum(tf.cast(batch[key], dtype))
        for name, key in WEIGHTS.items()
        if key in batch
    }


def _all_reduce(context, values):
    """Adds up a structure of tensors over all replicas."""
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)
