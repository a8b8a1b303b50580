"""The first half of a training step: loss sums and gradients of a replica's part of the batch.

Plain tensors in, plain tensors out, no variable captured: one XLA computation on each device.

Shapes: B examples of a replica, V vocabulary, M microbatches, L dropout layers.
"""

import functools
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from bert_tf.distillation import Teacher
from bert_tf.dropout import random_bits
from bert_tf.layers import call_block
from bert_tf.objective import WHOLE, total_loss
from bert_tf.training.recompute import recompute_block
from bert_tf.training.token_dropping import SUMS, TokenDropping

if TYPE_CHECKING:  # it imports this module
    from bert_tf.training.step import StepConfig


class ForwardBackward:
    """Both passes of a `TrainingStep`, which adds the replicas and the update.

    Args:
        model, config, token_dropping, teacher: as for `TrainingStep`.
        reduced_dtype: the type of the gradients that leave it; None: the weights'.
    """

    def __init__(
        self,
        model: keras.Model,
        config: "StepConfig",
        reduced_dtype: str | None,
        token_dropping: TokenDropping | None,
        teacher: Teacher | None,
    ) -> None:
        self.model = model
        self.config = config
        self.teacher = teacher
        self.objective = teacher.objective(model.objective) if teacher else model.objective
        self.token_dropping = token_dropping
        self.weights = model.trainable_variables
        self.dtype = self.weights[0].dtype
        self.reduced_dtype = reduced_dtype or self.dtype
        # The seeds of every SeedGenerator in the model, which has no other such variables.
        self.seed_states = model.non_trainable_variables

    def _accumulate(self, weights, step, replica, batch, denominators, scale, *, taught=()):
        """The loss sums of this replica's part of the batch, and of the gradient.

        Args:
            step: how many updates were made before, int64.
            replica: which replica this is, int32.
            denominators: what `Objective.denominators` returns for the global batch.
            scale: what the loss, and with it the gradient, is multiplied by.
            taught: a tensor for each variable of the teacher, if there is one.

        Returns:
            Scalars by name; dense tensors in `reduced_dtype`, None for a weight without a gradient.
        """
        count = self.config.gradient_accumulation_steps  # M
        seeds = self._seeds(step, replica)  # [M, L, 2]
        if count == 1:
            sums, gradients = self._microbatch(
                weights, seeds[0], batch, denominators, scale, taught
            )
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
        """The loss sums of some examples, and their part of the gradient.

        The model itself is called, not `stateless_call`, which would not pass `training` on to
        nested layers.
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
            # Inside the dropping, which puts tokens back before the layer that a teacher watches.
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
        """The variables of a forward pass with their values, seeds of dropout [L, 2] included."""
        state = [*zip(self.weights, weights, strict=True)]
        return [*state, *zip(self.seed_states, tf.unstack(seeds), strict=True)]

    def _seeds(self, step, replica):
        """New seeds for every dropout layer in every microbatch, by (seed, step, replica).

        They are [M, L, 2] uint32.
        """
        seed = tf.constant([self.config.seed, 0], tf.uint32)
        for number in (step, replica):
            seed = random_bits(tf.cast(number, tf.int32), 2, seed)
        count, layers = self.config.gradient_accumulation_steps, len(self.seed_states)
        bits = random_bits(tf.range(count * layers), 2, seed)  # [M * L, 2]
        return tf.reshape(bits, [count, layers, 2])  # [M, L, 2]

    def _forward(self, weights, step, replica, batch):
        """The tensors of `Objective.shared` for a replica's part of the batch, [B, ...] each."""
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
        """The function of a number that gives this microbatch of a replica's part of the batch.

        Its features are [B / M, ...]; features of the whole global batch are in each as they are.
        """
        count = self.config.gradient_accumulation_steps
        whole = {k: v for k, v in batch.items() if k.startswith(WHOLE)}
        rest = {k: v for k, v in batch.items() if k not in whole}
        split = {k: tf.reshape(v, [count, -1, *v.shape[1:]]) for k, v in rest.items()}  # [M, ...]
        return lambda i: {**{k: v[i] for k, v in split.items()}, **whole}
