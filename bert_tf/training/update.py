"""Computes new weights from the reduced sums and gradients, the second half of a step."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from bert_tf.objective import total_loss
from bert_tf.optimization import DecayOptimizer, clip_factor
from bert_tf.training.mixed_precision import LossScale, updated_scale
from bert_tf.training.replicas import by_device, graph
from bert_tf.training.token_dropping import SUMS, TokenDropping


class Update:
    """Clips the gradient and updates the weights, in one computation on each device.

    It replaces `optimizer.apply`, which would sum the gradients over the replicas once more. A
    non-finite loss or gradient changes no weight, without a branch for which a GPU's host would
    have to wait. The optimizer must be built with the weights. A step also updates the average of
    `token_dropping`.
    """

    def __init__(
        self,
        weights: Sequence[Any],
        optimizer: DecayOptimizer,
        loss_scale: LossScale | None,
        xla: bool,
        token_dropping: TokenDropping | None = None,
    ) -> None:
        self.weights = weights
        self.optimizer = optimizer
        self.scales = [loss_scale.scale, loss_scale.good_steps] if loss_scale else []
        self.token_dropping = token_dropping
        self.dtype = weights[0].dtype
        self.compiled = graph(self._on_device, jit_compile=xla)

    @property
    def counts(self) -> list[Any]:
        """The variables that a skipped update changes too."""
        return [self.optimizer.iterations, self.optimizer.skipped, *self.scales]

    def __call__(
        self,
        context: tf.distribute.ReplicaContext,
        trained: tuple[int, ...],
        values: tuple[Any, ...],
    ) -> dict[str, Any]:
        """Updates the weights on every device; call it in the replica context.

        Args:
            trained: the indices in `weights` of the weights that have a gradient.
            values: the sums and denominators for `total_loss`, and the gradients of the global
                batch; the same on all replicas.

        Returns:
            "loss", "gradient_norm" before clipping, "learning_rate", "skipped", and "loss_scale" if
            there is one.
        """
        # Outside XLA, which would round it differently from runs without XLA.
        rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        on_devices = functools.partial(self._on_devices, trained)
        return context.merge_call(on_devices, args=(*values, rate))

    def _on_devices(self, trained, strategy, *values):
        variables = [self.weights[i] for i in trained]
        state = {
            "weights": [v.value for v in variables],
            "slots": [[v.value for v in self.optimizer.slot_variables(w)] for w in variables],
            "iterations": self.optimizer.iterations.value,
            "skipped": [self.optimizer.skipped.value],
            "loss_scale": self.scales,
            "token_losses": [self.token_dropping.losses] if self.token_dropping else [],
        }
        metrics = []
        for device_state, device_values in by_device(strategy, (state, values)):
            with tf.device(device_state["weights"][0].device):
                metrics.append(self.compiled(trained, device_state, device_values))
        return metrics[0]  # the same on all devices

    def _on_device(self, trained, state, values):
        """Updates the variables of one device, reading and writing each once; returns the metrics.

        Takes the arguments of `new_state`, with variables in `state`.
        """
        values_before = tf.nest.map_structure(tf.convert_to_tensor, state)
        new, metrics = self.new_state(trained, values_before, values)
        pairs = zip(tf.nest.flatten(state), tf.nest.flatten(new), strict=True)
        for variable, value in pairs:
            variable.assign(value)
        return metrics

    def new_state(
        self, trained: tuple[int, ...], state: Mapping[str, Any], values: tuple[Any, ...]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Computes an update's new weights and other state, without assigning them.

        Args:
            trained: as for `__call__`.
            state: "weights", W tensors; "slots", a list per weight; "iterations", the number of
                updates; "skipped", how many were skipped, "loss_scale", the two values of a
                `LossScale`, "token_losses", the average of a `TokenDropping`; each may be empty.
            values: sums, denominators, W gradients of any float type, the learning rate.

        Returns:
            The new state with the same structure, and the metrics of `__call__`.
        """
        sums, denominators, gradients, rate = values
        loss_scale, iterations = state["loss_scale"], state["iterations"]
        counted = iterations - sum(state["skipped"])  # what the moments hold
        scale = tf.convert_to_tensor(loss_scale[0] if loss_scale else 1.0, self.dtype)
        loss = total_loss(sums, denominators)
        gradients = [tf.cast(gradient, self.dtype) for gradient in gradients]
        norm = tf.linalg.global_norm(gradients) / scale
        finite = tf.math.is_finite(loss) & tf.math.is_finite(norm)
        overflows = tf.math.is_finite(loss) & ~finite  # else no scale would mend it
        factor = clip_factor(norm) / scale
        new_weights, new_slots = [], []
        rows = zip(trained, state["weights"], state["slots"], gradients, strict=True)
        for i, weight, slots, gradient in rows:
            decayed = self.optimizer.is_decayed(self.weights[i])
            new_weight, news = self.optimizer.updated(
                weight, tuple(slots), gradient * factor, rate, decayed, counted
            )
            new_weights.append(tf.where(finite, new_weight, weight))
            new_slots.append([tf.where(finite, *pair) for pair in zip(news, slots, strict=True)])
        new = {
            "weights": new_weights,
            "slots": new_slots,
            # A skipped step counts, because its batch and learning rate are used up.
            "iterations": iterations + 1,
            "skipped": [count + tf.cast(~finite, count.dtype) for count in state["skipped"]],
            "loss_scale": updated_scale(overflows, *loss_scale) if loss_scale else (),
            "token_losses": [
                tf.where(finite, TokenDropping.updated(average, sums[SUMS]), average)
                for average in state["token_losses"]
            ],
        }
        metrics = {
            "loss": loss,
            "gradient_norm": norm,
            "learning_rate": rate,
            "skipped": 1.0 - tf.cast(finite, self.dtype),
        }
        return new, ({**metrics, "loss_scale": scale} if loss_scale else metrics)
