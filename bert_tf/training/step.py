"""Computes a training step, with the same mathematics on any number of devices.

    loop                    several steps without returning to Python between them
      _distributed_step     cuts a global batch to a compiled length and runs every replica
        _replica_step       one replica's update, from its part of the batch to the new weights
          _accumulate       forward and backward over the microbatches, each in _microbatch
          Update            loss, norm and new weights, in update.py

`_accumulate` and `Update` are one XLA computation each on every device. The host starts these two
and the reductions between them, and waits for none. `_accumulate` takes and returns plain tensors
and captures no variable. It returns sums, not means, which are added up over the replicas.

Shapes: B examples of a replica, G examples of the global batch, R replicas, T tokens,
M microbatches, L dropout layers.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.distillation import Teacher
from bert_tf.dropout import random_bits
from bert_tf.input.length_buckets import BUCKET, cut
from bert_tf.layers import call_block
from bert_tf.objective import OWN_ROWS, WHOLE, total_loss
from bert_tf.optimization import DecayOptimizer
from bert_tf.summaries.histograms import histograms, layer_groups
from bert_tf.training.mixed_precision import LossScale
from bert_tf.training.recompute import recompute_block
from bert_tf.training.replicas import all_reduce, feature_specs, graph, local_values, zeros
from bert_tf.training.token_dropping import FEATURE, SUMS, TokenDropping
from bert_tf.training.update import Update
from bert_tf.training.xla import Compilation


@dataclasses.dataclass(frozen=True)
class StepConfig:
    """The settings of an update.

    The fields are set by the flags of the same names
    (`run_scripts.session.Session.training_config`).
    """

    # The number of microbatches into which a replica's part of the batch is split. They run in
    # sequence, and their gradients are added up before the update.
    gradient_accumulation_steps: int = 1
    # The type in which gradients are summed over devices: the weights' type, or "bfloat16".
    all_reduce_precision: str = "float32"
    recompute: str = "none"  # or "block", to keep only the input of each block
    # The lengths to which batches with a `BUCKET` are cut, ascending, ending with the examples'
    # length; the step is compiled for each length. Empty: batches are not cut.
    bucket_boundaries: tuple[int, ...] = ()
    histogram_steps: int = 0  # updates between two histograms of weights and gradients; 0 for none
    seed: int = 12345  # determines the dropout masks, together with the step and the replica


class TrainingStep:
    """Updates the model with one global batch.

    Args:
        model: has an `objective`, as `PretrainingModel` does; created in the strategy's scope.
        optimizer: a `DecayOptimizer`, created in the strategy's scope and built with the model's
            trainable variables.
        compilation: the parts of the step that XLA compiles.
        loss_scale: a `LossScale` for float16, or None.
        token_dropping: a `TokenDropping`, or None.
        teacher: a `Teacher` from which the model also learns, or None.
    """

    def __init__(
        self,
        model: keras.Model,
        optimizer: DecayOptimizer,
        strategy: tf.distribute.Strategy,
        config: StepConfig,
        compilation: Compilation,
        loss_scale: LossScale | None = None,
        *,
        token_dropping: TokenDropping | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        self.model = model
        self.teacher = teacher
        self.objective = teacher.objective(model.objective) if teacher else model.objective
        self.optimizer = optimizer
        self.strategy = strategy
        self.config = config
        self.loss_scale = loss_scale
        self.token_dropping = token_dropping
        self.weights = model.trainable_variables
        self.dtype = self.weights[0].dtype
        bfloat16 = config.all_reduce_precision == "bfloat16" and strategy.num_replicas_in_sync > 1
        self.reduced_dtype = "bfloat16" if bfloat16 else self.dtype
        self.frozen = [weight for weight in model.weights if not weight.trainable]
        # The seeds of every SeedGenerator; the model has no other variables of this kind.
        frozen = {id(weight) for weight in self.frozen}
        self.seed_states = [v for v in model.non_trainable_variables if id(v) not in frozen]
        self.forward = graph(self._forward, jit_compile=compilation.whole)
        self.forward_backward = graph(self._accumulate, jit_compile=compilation.whole)
        self.update = Update(
            self.weights, optimizer, loss_scale, compilation.update, token_dropping
        )
        self.groups = layer_groups(self.weights) if config.histogram_steps else {}
        self.run = graph(self._distributed_step)
        self.run_loop = graph(self._loop)

    def __call__(
        self, batch: Mapping[str, Any], stop: bool = False, seconds: float = 0.0, spent: float = 0.0
    ) -> dict[str, Any]:
        """Runs one step.

        Args:
            batch: features of the global batch, as `strategy` distributes them.
            stop: whether this worker wants to stop.
            seconds: the duration of a step on this worker.
            spent: the share of the time budget spent according to this worker.

        Returns:
            A dict of scalars: the sums of the model's objective over the global batch; "loss";
            "gradient_norm" (before clipping); "learning_rate"; "positions", and "tokens", the
            positions that are not padding; "skipped", 1 if loss or gradient was not finite and no
            weight was changed; "stop", the share of replicas whose workers want to stop;
            "step_seconds" and "spent_share", the means of `seconds` and `spent` over the replicas;
            "loss_scale" if there is one; and with `histogram_steps` the "histograms" of
            `bert_tf.summaries.histograms`.
        """
        return self.run(batch, self._worker_metrics(stop, seconds, spent))

    def loop(
        self,
        batches: Iterator[Any],
        steps: int,
        stop: bool = False,
        seconds: float = 0.0,
        spent: float = 0.0,
    ) -> dict[str, Any]:
        """Runs several steps without returning to Python between them.

        Args:
            batches: an iterator over global batches, as `strategy` distributes them.
            stop, seconds, spent: as for `__call__`.

        Returns:
            The metrics of `__call__` as vectors with a number per step, and "input_seconds", the
            time that each step waited for its batch.
        """
        return self.run_loop(
            batches, tf.constant(steps), self._worker_metrics(stop, seconds, spent)
        )

    def _worker_metrics(self, stop, seconds, spent):
        """Returns the metrics that differ between workers; the step returns their means."""
        values = {"stop": stop, "step_seconds": seconds, "spent_share": spent}
        return {name: tf.cast(value, self.dtype) for name, value in values.items()}

    def _loop(self, batches, steps, worker_metrics):
        shapes = {}  # of a step's metrics, which are known when `run_step` has been traced

        def run_step(i, table):
            start = tf.timestamp()
            with tf.control_dependencies([start]):
                batch = next(batches)
            parts = [local_values(self.strategy, value) for value in batch.values()]
            with tf.control_dependencies(tf.nest.flatten(parts)):
                waited = tf.timestamp() - start
            metrics = {**self._distributed_step(batch, worker_metrics), "input_seconds": waited}
            shapes.update({name: value.shape for name, value in metrics.items()})
            row = [tf.reshape(tf.cast(v, self.dtype), [-1]) for v in metrics.values()]
            return i + 1, table.write(i, tf.concat(row, axis=0))

        table = tf.TensorArray(self.dtype, size=steps)
        _, table = tf.while_loop(lambda i, _: i < steps, run_step, (0, table))
        sizes = [shape.num_elements() for shape in shapes.values()]
        columns = tf.split(tf.ensure_shape(table.stack(), [None, sum(sizes)]), sizes, axis=1)
        pairs = zip(shapes.items(), columns, strict=True)
        return {name: tf.reshape(column, [-1, *shape]) for (name, shape), column in pairs}

    def _distributed_step(self, batch, worker_metrics):
        batch = dict(batch)
        bucket = batch.pop(BUCKET, None)

        def run(length):
            def step(batch, worker_metrics):
                return self._replica_step(cut(batch, length), worker_metrics, all_reduce)

            metrics = self.strategy.run(step, args=(batch, worker_metrics))
            # Every replica returns the same numbers, as they were reduced inside.
            return {name: local_values(self.strategy, value)[0] for name, value in metrics.items()}

        if bucket is None:
            return run(None)
        # All replicas have the same bucket. Each length has a branch, as XLA needs fixed shapes.
        branches = [functools.partial(run, length) for length in self.config.bucket_boundaries]
        return tf.switch_case(local_values(self.strategy, bucket)[0], branches)

    def _replica_step(self, batch, worker_metrics, reduce):
        """Runs one replica's whole update; every replica returns the metrics of `__call__`.

        Args:
            batch: the replica's features [B, ...], for example "input_ids" [B, T].
            worker_metrics: scalars whose means over the replicas are returned.
            reduce: `all_reduce`, or a replacement.
        """
        context = tf.distribute.get_replica_context()
        objective = self.objective

        # 1. The denominators of the global batch's losses and other counts, all scalars.
        weights = objective.weight_sums(batch)
        # Not summed as integers, whose sum would not run on the GPU.
        mask = tf.cast(batch["input_mask"], self.dtype)  # [B, T]
        counts = {
            **weights,
            "tokens": tf.reduce_sum(mask),
            "positions": tf.cast(tf.size(mask), self.dtype),
        }
        # tf.identity puts them on the replica's device for the reduction; a mean sums shares.
        replicas = context.num_replicas_in_sync
        counts |= {name: tf.identity(value) / replicas for name, value in worker_metrics.items()}
        counts = reduce(context, counts)
        denominators = objective.denominators({name: counts.pop(name) for name in weights})

        # 2. Forward and backward: the loss sums, and a gradient of each weight in its shape.
        scale = tf.constant(1.0, self.dtype)
        if self.loss_scale is not None:
            scale = tf.convert_to_tensor(self.loss_scale.scale)
        place = (
            [v.value for v in self.weights],
            tf.convert_to_tensor(self.optimizer.iterations.value),
            tf.convert_to_tensor(context.replica_id_in_sync_group, tf.int32),
        )
        batch = self._share(context, place, batch, reduce)
        if self.token_dropping is not None:
            batch = {**batch, FEATURE: tf.convert_to_tensor(self.token_dropping.losses)}  # [V]
        taught = [v.value for v in self.teacher.weights] if self.teacher else []
        sums, gradients = self.forward_backward(*place, batch, denominators, scale, taught=taught)
        # Weights on which the loss does not depend have no gradient and are not updated or decayed.
        trained = tuple(i for i, gradient in enumerate(gradients) if gradient is not None)

        # 3. Sums over the replicas.
        sums, gradients = reduce(context, (sums, [gradients[i] for i in trained]))
        metrics = {name: value for name, value in {**sums, **counts}.items() if name != SUMS}
        if self.groups:  # before the update changes the weights
            metrics["histograms"] = self._histograms(trained, gradients)

        # 4. Loss and norm, clipping, new weights.
        return metrics | self.update(context, trained, (sums, denominators, gradients))

    def _share(self, context, place, batch, reduce):
        """Adds the global batch's `Objective.shared` to a replica's batch.

        As in GradCache (arXiv:2101.06983), runs a forward pass without a gradient, with the same
        dropout masks as in `_accumulate`, so that all parts together have the gradient of one large
        batch. `place` holds the first three arguments of `_accumulate`.

        Returns:
            The batch with `OWN_ROWS` [B] and "all_NAME" [G, ...], or unchanged if the objective
            shares nothing or this part is the whole batch.
        """
        names, replicas = self.objective.shared, context.num_replicas_in_sync
        if not names or replicas * self.config.gradient_accumulation_steps == 1:
            return batch
        own = self.forward(*place, batch)  # [B, ...] each
        # Other replicas' places are zeros, so the sum over the replicas is exact.
        places = tf.one_hot(place[2], replicas, dtype=self.dtype)  # [R]
        apart = {name: tf.tensordot(places, value, axes=0) for name, value in own.items()}
        together = reduce(context, apart)  # [R, B, ...] each
        every = {f"{WHOLE}{n}": tf.reshape(v, [-1, *v.shape[2:]]) for n, v in together.items()}
        count = tf.shape(own[names[0]])[0]
        rows = place[2] * count + tf.range(count)  # [B]
        return {**batch, OWN_ROWS: rows, **every}

    def _forward(self, weights, step, replica, batch):
        """Computes the tensors of `Objective.shared` for a replica's batch, [B, ...] each."""
        seeds, names = self._seeds(step, replica), self.objective.shared
        microbatch = self._split(batch)

        def compute(i):
            part = microbatch(i)
            with keras.StatelessScope(state_mapping=self._state(weights, seeds[i])):
                found = {**part, **self.model(part, training=True)}
            return {name: tf.cast(found[name], self.dtype) for name in names}

        numbers = tf.range(self.config.gradient_accumulation_steps)
        outputs = tf.map_fn(
            compute, numbers, dict.fromkeys(names, self.dtype), parallel_iterations=1
        )
        return {name: tf.reshape(v, [-1, *v.shape[2:]]) for name, v in outputs.items()}  # [B, ...]

    def _split(self, batch):
        """Returns a function that maps a number to that microbatch of a replica's batch.

        Its features are [B / M, ...]; features of the whole global batch are in each, unchanged.
        """
        count = self.config.gradient_accumulation_steps
        whole = {k: v for k, v in batch.items() if k.startswith(WHOLE)}
        rest = {k: v for k, v in batch.items() if k not in whole}
        split = {k: tf.reshape(v, [count, -1, *v.shape[1:]]) for k, v in rest.items()}  # [M, ...]
        return lambda i: {**{k: v[i] for k, v in split.items()}, **whole}

    def _histograms(self, trained, gradients):
        """Computes the histograms of weights and gradients in steps where they are due."""
        step = tf.convert_to_tensor(self.optimizer.iterations.value) + 1
        scale = 1.0 if self.loss_scale is None else tf.convert_to_tensor(self.loss_scale.scale)
        gradients = [tf.cast(gradient, self.dtype) / scale for gradient in gradients]
        return histograms(
            [tf.convert_to_tensor(v.value) for v in self.weights],
            dict(zip(trained, gradients, strict=True)),
            self.groups,
            due=step % self.config.histogram_steps == 0,
        )

    def compile(self, spec: Mapping[str, tf.TypeSpec], rows: int) -> None:
        """Has XLA compile the whole step on every device of this worker, without changing anything.

        Args:
            spec: the `element_spec` of the batches.
            rows: the number of rows in a replica's part of a batch.

        Raises:
            tf.errors.OpError: XLA cannot compile the step, or memory ran out.
        """
        specs = feature_specs(self.strategy, spec)
        lengths = self.config.bucket_boundaries if specs.pop(BUCKET, None) else (None,)
        counts = [(count, count.numpy()) for count in self.update.counts]
        # Run steps on zeros, the longest first. As reductions would wait for the other workers, NaN
        # replaces every sum, so that the update is skipped.
        try:
            for length in reversed(lengths):
                graph(functools.partial(self._try_step, specs, rows, length))()
        finally:
            for count, before in counts:
                count.assign(before)

    def _try_step(self, specs, rows, length):
        def no_numbers(context, values):
            return tf.nest.map_structure(lambda value: value * math.nan, values)

        def replica():
            self._replica_step(cut(zeros(specs, rows), length), {}, reduce=no_numbers)

        self.strategy.run(replica)

    def _accumulate(self, weights, step, replica, batch, denominators, scale, *, taught=()):
        """Computes the loss sums and gradients of this replica's part of the batch.

        Args:
            step: the number of previous updates, int64.
            replica: the index of this replica, int32.
            denominators: the `Objective.denominators` of the global batch.
            scale: the factor of the loss, and thus of the gradient.
            taught: a tensor for each variable of the teacher, if there is one.

        Returns:
            Scalars by name; dense tensors in `reduced_dtype`, None for a weight without a gradient.
        """
        count = self.config.gradient_accumulation_steps  # M
        seeds = self._seeds(step, replica)  # [M, L, 2]
        if count == 1:
            arguments = weights, seeds[0], batch, denominators, scale, taught
            sums, gradients = self._microbatch(*arguments)
            return sums, self._as_reduced(gradients)
        microbatch = self._split(batch)
        losses = self.objective.losses
        zero = tf.zeros([], self.dtype)
        sums = {f"{name}_{part}": zero for name in denominators for part in losses[name].sums}
        if self.token_dropping is not None:
            sums[SUMS] = tf.zeros([2, *self.token_dropping.losses.shape], self.dtype)
        gradients = [tf.zeros_like(w) for w in weights]
        has_gradient: list[bool] = []

        def add_microbatch(i, sums, gradients):
            new_sums, new_gradients = self._microbatch(
                weights, seeds[i], microbatch(i), denominators, scale, taught
            )
            has_gradient[:] = [new is not None for new in new_gradients]
            sums = {name: total + new_sums[name] for name, total in sums.items()}
            pairs = zip(gradients, new_gradients, strict=True)
            return i + 1, sums, [total if new is None else total + new for total, new in pairs]

        _, sums, gradients = tf.while_loop(
            lambda i, *_: i < count, add_microbatch, (0, sums, gradients), maximum_iterations=count
        )
        pairs = zip(gradients, has_gradient, strict=True)
        return sums, self._as_reduced([gradient if has else None for gradient, has in pairs])

    def _as_reduced(self, gradients):
        return [None if g is None else tf.cast(g, self.reduced_dtype) for g in gradients]

    def _microbatch(self, weights, seeds, batch, denominators, scale, taught):
        """Computes the loss sums of some examples, and their part of the gradient.

        Calls the model itself because `stateless_call` would not pass `training` to nested layers.
        """
        teacher = self.teacher
        if teacher:
            batch = {**batch, **teacher.features(taught, batch)}
        state = self._state(weights, seeds)
        with tf.GradientTape() as tape, keras.StatelessScope(state_mapping=state) as scope:
            tape.watch(weights)
            run_block = call_block
            if self.config.recompute == "block":
                run_block = functools.partial(recompute_block, scope)
            # Inside token dropping, which restores all tokens before the layer that is watched.
            run_block, watched = teacher.watch(run_block) if teacher else (run_block, dict)
            if self.token_dropping is not None:
                calls = self.model.config.num_block_calls
                run_block = self.token_dropping.run_block(run_block, batch, calls)
            outputs = self.model(batch, training=True, run_block=run_block)
            sums = self.objective.loss_sums({**outputs, **watched()}, batch)
            loss = total_loss(sums, denominators) * scale
        if self.token_dropping is not None:
            pieces = self.model.objective.piece_losses(outputs, batch)
            sums[SUMS] = self.token_dropping.loss_sums(*pieces)
        gradients = tape.gradient(loss, weights)
        # convert_to_tensor makes the gradient of a gathered table dense.
        return sums, [None if g is None else tf.convert_to_tensor(g) for g in gradients]

    def _state(self, weights, seeds):
        """Pairs a forward pass's variables with values, including the dropout seeds [L, 2]."""
        state = [*zip(self.weights, weights, strict=True)]
        state += [(weight, weight.value) for weight in self.frozen]
        return [*state, *zip(self.seed_states, tf.unstack(seeds), strict=True)]

    def _seeds(self, step, replica):
        """Derives seeds for every dropout layer and microbatch from (seed, step, replica).

        Returns [M, L, 2] uint32.
        """
        seed = tf.constant([self.config.seed, 0], tf.uint32)
        for number in (step, replica):
            seed = random_bits(tf.cast(number, tf.int32), 2, seed)
        count, layers = self.config.gradient_accumulation_steps, len(self.seed_states)
        bits = random_bits(tf.range(count * layers), 2, seed)  # [M * L, 2]
        return tf.reshape(bits, [count, layers, 2])  # [M, L, 2]
