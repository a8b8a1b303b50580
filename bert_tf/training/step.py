"""One training step, one evaluation step, the same mathematics on any number of devices.

The forward and the backward pass are one XLA computation on every replica: plain tensors
in, plain tensors out, no variable captured. Sums, not means, leave it; they are added up
over the replicas, then the gradient is clipped by the norm of the whole, then the weights
are updated, by a second XLA computation that reads and writes each of them once. A step
whose loss or gradient is not finite changes no weight.
"""

import functools

import keras
import tensorflow as tf

from bert_tf.input.length_buckets import BUCKET, cut
from bert_tf.layers import run_block
from bert_tf.optimization import clip_factor
from bert_tf.pretraining import WEIGHTS, total_loss
from bert_tf.training.recompute import recompute_block
from bert_tf.training.xla import Compiled

# Without AutoGraph, which would rewrite the model's Python for seconds at every start: no control
# flow here is for it to find.
graph = functools.partial(tf.function, autograph=False)


class TrainingStep:
    """Updates the model by one global batch.

    Args:
        model: a `PretrainingModel`, or another with an `objective`, made in the strategy's scope.
        optimizer: an optimizer of `bert_tf.optimization`, made in the strategy's scope and
            built with the model's trainable variables.
        strategy: a `tf.distribute.Strategy`.
        seed: with the step and the replica it decides what dropout drops.
        xla: whether the forward and backward pass is compiled by XLA.
        xla_update: whether the update is.
        accumulation_steps: parts that a replica's share of the batch is computed in, one after
            the other; they are added up before the one update.
        recompute: "none", or "block" to keep the input of each block alone.
        loss_scale: a `LossScale` for float16, or None.
        boundaries: the lengths that batches with a `BUCKET` are cut to; the step is compiled for
            each of them.
    """

    def __init__(
        self,
        model,
        optimizer,
        strategy,
        seed=0,
        xla=True,
        xla_update=True,
        accumulation_steps=1,
        recompute="none",
        loss_scale=None,
        boundaries=(),
    ):
        self.model = model
        self.optimizer = optimizer
        self.strategy = strategy
        self.seed = seed
        self.accumulation_steps = accumulation_steps
        self.recompute = recompute
        self.loss_scale = loss_scale
        self.boundaries = boundaries
        self.weights = model.trainable_variables
        self.dtype = self.weights[0].dtype
        # The states of the dropout layers' seed generators.
        self.seed_states = model.non_trainable_variables
        self.forward_backward = graph(self._forward_backward, jit_compile=xla)
        self.apply_gradients = graph(self._apply_gradients, jit_compile=xla_update)
        self.run = graph(self._run)
        self.run_loop = graph(self._run_loop)

    def __call__(self, batch, stop=False, seconds=0.0):
        """Runs one step.

        Args:
            batch: features of the global batch, as `strategy` distributes them.
            stop: whether this worker wants to stop.
            seconds: how long a step took at this worker.

        Returns:
            A dict of scalars: the sums of the model's objective over the global batch; "loss";
            "gradient_norm" (before clipping); "learning_rate"; "tokens", those of all
            "positions" that are not padding; "skipped", 1 where loss or gradient was not finite
            and no weight was changed; "stop", the share of replicas whose workers want to stop;
            "step_seconds", the mean of `seconds` over them; and "loss_scale" if there is one.
        """
        return self.run(batch, self._told(stop, seconds))

    def loop(self, batches, steps, stop=False, seconds=0.0):
        """Runs some steps without coming back to Python in between.

        Args:
            batches: an iterator over global batches, as `strategy` distributes them.
            steps: how many.
            stop, seconds: as for `__call__`.

        Returns:
            What `__call__` returns, each a vector with a number for every step, and
            "input_seconds", how long each waited for its batch.
        """
        return self.run_loop(batches, tf.constant(steps), self._told(stop, seconds))

    def _told(self, stop, seconds):
        """What this worker tells the others, under the names of the metrics that it becomes."""
        told = {"stop": stop, "step_seconds": seconds}
        return {name: tf.cast(value, self.dtype) for name, value in told.items()}

    def _run_loop(self, batches, steps, told):
        def run_step(i, table):
            start = tf.timestamp()
            with tf.control_dependencies([start]):
                batch = next(batches)
            with tf.control_dependencies(_local_tensors(self.strategy, batch)):
                waited = tf.timestamp() - start
            row = self._row({**self._run(batch, told), "input_seconds": waited})
            return i + 1, table.write(i, row)

        table = tf.TensorArray(self.dtype, size=steps)
        _, table = tf.while_loop(lambda i, _: i < steps, run_step, (0, table))
        names = self.metric_names
        columns = tf.unstack(tf.ensure_shape(table.stack(), [None, len(names)]), axis=1)
        return dict(zip(names, columns, strict=True))

    def _row(self, metrics):
        """The metrics of one step as a vector, in the order of `metric_names`."""
        self.metric_names = sorted(metrics)
        return tf.stack([tf.cast(metrics[name], self.dtype) for name in self.metric_names])

    def _run(self, batch, told):
        batch = dict(batch)
        if BUCKET not in batch:
            return self._run_cut(None, batch, told)
        # The same number on all replicas; a branch for each length, as XLA compiles fixed shapes.
        bucket = _local(self.strategy, batch.pop(BUCKET))[0]
        return tf.switch_case(
            bucket,
            [functools.partial(self._run_cut, length, batch, told) for length in self.boundaries],
        )

    def _run_cut(self, length, batch, told):
        def step(batch, told):
            return self._replica_step(cut(batch, length), told)

        metrics = self.strategy.run(step, args=(batch, told))
        # Every replica returns the same numbers: they were reduced inside.
        return {name: _local(self.strategy, value)[0] for name, value in metrics.items()}

    def _replica_step(self, batch, told):
        context = tf.distribute.get_replica_context()
        step = self.optimizer.iterations.value
        tokens = tf.cast(tf.reduce_sum(batch["input_mask"]), self.dtype)
        positions = tf.cast(tf.size(batch["input_mask"]), self.dtype)
        objective = self.model.objective
        counts = {**weight_sums(batch, objective.weights), "tokens": tokens, "positions": positions}
        # On the replica's device, which the reduction asks for; a mean is a sum of shares.
        replicas = context.num_replicas_in_sync
        counts |= {name: tf.identity(value) / replicas for name, value in told.items()}
        counts = _all_reduce(context, counts)
        divisors = objective.denominators(
            {name: counts[name] for name in counts if name in objective.weights}
        )
        scale = tf.constant(1.0, self.dtype)
        if self.loss_scale is not None:
            scale = tf.convert_to_tensor(self.loss_scale.scale)
        sums, gradients = self.forward_backward(
            [v.value for v in self.weights],
            self._seeds(step, context.replica_id_in_sync_group),
            batch,
            divisors,
            scale,
        )
        # A weight that the loss does not depend on has no gradient: neither update nor decay.
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        sums, gradients = _all_reduce(context, (sums, [gradients[i] for i in used]))
        loss = total_loss(sums, divisors)
        norm = tf.linalg.global_norm(gradients) / scale
        # After the reduction, so that all replicas decide alike.
        finite = tf.math.is_finite(loss) & tf.math.is_finite(norm)
        rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        update = functools.partial(self._update, used)
        context.merge_call(update, args=(gradients, rate, clip_factor(norm) / scale, finite))
        metrics = {
            **sums,
            "loss": loss,
            "gradient_norm": norm,
            "learning_rate": rate,
            "tokens": counts["tokens"],
            "positions": counts["positions"],
            "skipped": 1.0 - tf.cast(finite, self.dtype),
            **{name: counts[name] for name in told},
        }
        return metrics if self.loss_scale is None else {**metrics, "loss_scale": scale}

    def _forward_backward(self, weights, seeds, batch, divisors, scale):
        """The loss sums of this replica's share of the batch, and of the gradient.

        Args:
            weights: a tensor for each variable of `self.weights`.
            seeds: [accumulation_steps, dropout layers, 2] uint32.
            batch: this replica's features.
            divisors: what `denominators` returns for the global batch.
            scale: what the loss, and with it the gradient, is multiplied by.

        Returns:
            A dict of scalars, and a list of dense tensors, None for a weight without a gradient.
        """
        parts = self.accumulation_steps
        if parts == 1:
            return self._part(weights, seeds[0], batch, divisors, scale)
        cut = {k: tf.reshape(v, [parts, -1, *v.shape[1:]]) for k, v in batch.items()}
        zero = tf.zeros([], self.dtype)
        names = self.model.objective.sums
        sums = {f"{name}_{part}": zero for name in divisors for part in names}
        gradients, used = [tf.zeros_like(w) for w in weights], []

        def add_part(i, sums, gradients):
            one = {k: v[i] for k, v in cut.items()}
            more, steps = self._part(weights, seeds[i], one, divisors, scale)
            used[:] = [g is not None for g in steps]
            sums = {name: value + more[name] for name, value in sums.items()}
            pairs = zip(gradients, steps, strict=True)
            return i + 1, sums, [g if s is None else g + s for g, s in pairs]

        _, sums, gradients = tf.while_loop(
            lambda i, *_: i < parts, add_part, (0, sums, gradients), maximum_iterations=parts
        )
        return sums, [g if u else None for g, u in zip(gradients, used, strict=True)]

    def _part(self, weights, seeds, batch, divisors, scale):
        """The loss sums of some examples, and their share of the gradient.

        The model itself is called, not `stateless_call`: that would not hand `training` on
        to nested layers.
        """
        state = [*zip(self.weights, weights, strict=True)]
        state += [*zip(self.seed_states, tf.unstack(seeds), strict=True)]
        with tf.GradientTape() as tape, keras.StatelessScope(state_mapping=state) as scope:
            tape.watch(weights)
            run = run_block
            if self.recompute == "block":
                run = functools.partial(recompute_block, scope)
            outputs = self.model(batch, training=True, run_block=run)
            sums = self.model.objective.loss_sums(outputs, batch)
            loss = total_loss(sums, divisors) * scale
        gradients = tape.gradient(loss, weights)
        # convert_to_tensor makes the gradient of a table that was gathered from dense.
        return sums, [None if g is None else tf.convert_to_tensor(g) for g in gradients]

    def _seeds(self, step, replica):
        """Fresh seeds for every dropout layer in every part: a function of (seed, step, replica).

        Returns:
            [accumulation_steps, dropout layers, 2] uint32.
        """
        seed = tf.constant([self.seed, 0], tf.int32)
        for number in (step, replica):
            seed = tf.random.experimental.stateless_fold_in(seed, tf.cast(number, tf.int32))
        shape = [self.accumulation_steps, len(self.seed_states), 2]
        return tf.random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=tf.uint32)

    def _update(self, used, strategy, gradients, rate, factor, finite):
        """Updates the weights on every device; in the cross-replica context.

        Not `optimizer.apply`: it would add the gradients up over the replicas once more.

        Args:
            used: the weights' numbers in `self.weights` that there are gradients of.
            strategy: the strategy.
            gradients, rate, factor, finite: what `_replica_step` computed; the same numbers
                on all replicas.
        """
        finite = _local(strategy, finite)[0]  # one tensor, not one a replica

        def update():
            variables = [self.weights[i] for i in used]
            columns = zip(*((v, *self.optimizer.moments(v)) for v in variables), strict=True)
            weights, firsts, seconds = (
                [_local(strategy, v.value) for v in column] for column in columns
            )
            steps = [_local(strategy, g) for g in gradients]
            for d, (r, f) in enumerate(
                zip(_local(strategy, rate), _local(strategy, factor), strict=True)
            ):
                own = [[row[d] for row in rows] for rows in (weights, firsts, seconds, steps)]
                with tf.device(own[0][0].device):
                    self.apply_gradients(*own, r, f, decayed=self._decayed(variables))
            return tf.constant(True)

        done = tf.cond(finite, update, lambda: tf.constant(False))
        # Only then: a step that XLA cannot compile must not count, as it is made again.
        with tf.control_dependencies([done]):
            # A skipped step counts: its batch is over, and so is its learning rate.
            self.optimizer.iterations.assign_add(1)
            if self.loss_scale is not None:
                self.loss_scale.update(finite)

    def _decayed(self, variables):
        return tuple(self.optimizer.is_decayed(v) for v in variables)

    def _apply_gradients(self, weights, firsts, seconds, gradients, rate, factor, decayed):
        """Updates the variables of one device; they are read and written once each."""
        for weight, first, second, gradient, decay in zip(
            weights, firsts, seconds, gradients, decayed, strict=True
        ):
            values = self.optimizer.updated(weight, first, second, gradient * factor, rate, decay)
            for variable, value in zip((weight, first, second), values, strict=True):
                variable.assign(value)


class EvaluationStep:
    """The loss sums of a global batch, without dropout.

    Args:
        model: a `PretrainingModel`, or another with an `objective`, made in the strategy's scope.
        strategy: a `tf.distribute.Strategy`.
        xla: "auto", "on" or "off": whether XLA compiles the forward pass.
    """

    def __init__(self, model, strategy, xla="off"):
        self.model = model
        self.strategy = strategy
        self.weights = model.trainable_variables
        self.run = Compiled(self._make, xla, model.compute_dtype, "the evaluation")

    def __call__(self, batch):
        """Returns the sums of the model's objective over the global batch."""
        return self.run(batch)

    def _make(self, compilation):
        forward = graph(self._forward, jit_compile=compilation.whole)

        def replica_step(batch):
            context = tf.distribute.get_replica_context()
            return _all_reduce(context, forward([v.value for v in self.weights], batch))

        def run(batch):
            sums = self.strategy.run(replica_step, args=(batch,))
            return {name: _local(self.strategy, value)[0] for name, value in sums.items()}

        return graph(run)

    def _forward(self, weights, batch):
        state = [*zip(self.weights, weights, strict=True)]
        with keras.StatelessScope(state_mapping=state):
            return self.model.objective.loss_sums(self.model(batch, training=False), batch)


def weight_sums(batch, weights=WEIGHTS):
    """The sum of the weights of each loss in one part of a batch, in float32 or float64.

    Args:
        batch: features.
        weights: the name of each loss -> the feature with its weights; those that the batch
            lacks are left out.
    """
    dtype = keras.backend.result_type(keras.config.floatx(), "float32")
    return {
        name: tf.reduce_sum(tf.cast(batch[key], dtype))
        for name, key in weights.items()
        if key in batch
    }


def _all_reduce(context, values):
    """Adds up a structure of tensors over all replicas."""
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def _local(strategy, value):
    """What each of this worker's replicas has of a distributed value, as a tuple."""
    return strategy.experimental_local_results(value)


def _local_tensors(strategy, batch):
    """All tensors of a distributed batch that are on this worker."""
    return [tensor for value in batch.values() for tensor in _local(strategy, value)]
