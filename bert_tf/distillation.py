"""Distillation from a frozen teacher that reads the same batch as the student.

The teacher runs inside the training step, without dropout; its results are features of the batch,
whose names begin with `TAUGHT`. The total loss is (1 - w) times the student's own loss plus w times
the distance from the teacher, where w is the teacher's weight.

Shapes: B batch, T tokens, H hidden (the student's and the teacher's may differ), A relation heads,
D = H / A, C classes.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.attention import attention_bias
from bert_tf.layers import call_block
from bert_tf.objective import Loss, Objective, SoftLoss, weighted_sums

# The prefix of the names of features that a teacher computed.
TAUGHT = "teacher_"

# The prefix of the names of a student's outputs that are compared with these features.
WATCHED = "student_"

# First letter -> name of an attention layer's projection; "qk" is the relation of queries to keys.
PROJECTIONS = {"q": "query", "k": "key", "v": "value"}


def soft_divergence(logits: Any, targets: Any, temperature: float) -> Any:
    """Computes the distance from a teacher's classes, [..., C] each -> [...] in float32 at least.

    It is t^2 KL(softmax(targets / t) || softmax(logits / t)), arXiv:1503.02531, section 2. The
    factor t^2 makes the size of the gradient independent of the temperature t.
    """
    log_q, log_p = (ops.log_softmax(_precise(x) / temperature) for x in (logits, targets))
    return temperature**2 * _divergence(log_p, log_q)


def soft_binary_divergence(logits: Any, targets: Any, temperature: float) -> Any:
    """Computes `soft_divergence` of two classes from the second class's logits: [...] -> [...]."""
    logits, targets = (_precise(x)[..., None] for x in (logits, targets))  # [..., 1]
    logits, targets = (
        ops.concatenate([ops.zeros_like(x), x], axis=-1) for x in (logits, targets)
    )  # [..., 2]
    return soft_divergence(logits, targets, temperature)


def _divergence(log_p, log_q):
    """Computes KL(p || q) over the last axis."""
    return ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)


def _precise(x):
    return ops.cast(x, keras.backend.result_type(x.dtype, "float32"))


def log_relations(a: Any, b: Any, heads: int, bias: Any) -> Any:
    """Computes the logarithm of the relations of two projections (arXiv:2012.15828, section 3).

    It is log softmax(a b^T / sqrt(D) + bias) in each relation head. The vectors of all attention
    heads are joined and split into A relation heads, so that student and teacher may have different
    numbers of attention heads. The projections are [B, T, H] each, the bias is an `attention_bias`,
    and the relations are [B, A, T, T], in float32 at least.
    """
    batch, length, width = ops.shape(a)
    size = width // heads

    def split(x):
        # [B, T, H] -> [B, A, T, D]
        return ops.transpose(ops.reshape(x, (batch, length, heads, size)), (0, 2, 1, 3))

    scores = ops.matmul(split(a) * (1.0 / math.sqrt(size)), ops.transpose(split(b), (0, 1, 3, 2)))
    scores = _precise(scores)
    return ops.log_softmax(scores + ops.cast(bias, scores.dtype))


def record_projections(
    run_block: Callable[..., Any], layer: int
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Makes a `run_block` that records one layer's queries, keys and values at all positions.

    Layers are counted from 1 by block calls, as ALBERT's layers share their blocks.

    Returns:
        The `run_block`, and a dict that it fills when it runs: "query", "key" and "value",
        [B, T, H] each.
    """
    kept: dict[str, Any] = {}
    calls = itertools.count(1)

    def run(block, x, inputs, training=None):
        if next(calls) == layer:
            attention = block.attention
            kept.update({name: getattr(attention, name)(x) for name in PROJECTIONS.values()})
        return run_block(block, x, inputs, training=training)

    return run, kept


@dataclasses.dataclass(frozen=True, eq=False)
class Teacher:
    """A frozen model, and the weight of the distance from it in a student's loss.

    Attributes:
        model: a `bert_tf.encoder.EncoderModel`, created in the strategy's scope.
        weight: w in the module's docstring.
    """

    model: keras.Model
    weight: float

    @property
    def weights(self) -> list[Any]:
        """The variables on which the teacher's outputs depend."""
        return self.model.trainable_variables

    def features(self, weights: Sequence[Any], batch: Mapping[str, Any]) -> dict[str, Any]:
        """Computes the teacher's features of a batch, without dropout: `TAUGHT` + name -> array.

        `weights` holds a tensor for each variable of `self.weights`.
        """
        state = [*zip(self.weights, weights, strict=True)]
        with keras.StatelessScope(state_mapping=state):
            outputs = self.run(batch)
        return {f"{TAUGHT}{name}": ops.stop_gradient(value) for name, value in outputs.items()}

    def objective(self, own: Objective) -> Objective:
        """Returns a student's `Objective` with the distance added as the loss "distillation"."""
        share = 1.0 - self.weight
        losses = {n: dataclasses.replace(x, factor=share * x.factor) for n, x in own.losses.items()}

        def loss_sums(outputs, batch):
            return {**own.loss_sums(outputs, batch), **self.loss_sums(own, outputs, batch)}

        losses["distillation"] = self.loss(own)
        return dataclasses.replace(own, losses=losses, loss_sums=loss_sums)

    def run(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Computes the arrays with which the student is compared, by name."""
        raise NotImplementedError

    def loss(self, own: Objective) -> Loss:
        """Returns the `Loss` that is added to a student's `Objective`."""
        raise NotImplementedError

    def loss_sums(
        self, own: Objective, outputs: Mapping[str, Any], batch: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Computes the sums of that loss, "distillation_loss" and "distillation_weight".

        `own` is the student's; `outputs` also has `watch`'s arrays, and `batch` the `features`.
        """
        raise NotImplementedError

    def watch(
        self, run_block: Callable[..., Any] = call_block
    ) -> tuple[Callable[..., Any], Callable[[], dict[str, Any]]]:
        """Returns a `run_block` for the student and a function that returns its recorded arrays."""
        return run_block, dict


@dataclasses.dataclass(frozen=True, eq=False)
class OutputTeacher(Teacher):
    """Teaches its outputs at a temperature, with the `SoftLoss` of the student's objective."""

    temperature: float = 1.0

    def run(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        outputs: dict[str, Any] = self.model(batch, training=False)
        return outputs

    def loss(self, own: Objective) -> Loss:
        model_loss = own.losses[_soft(own).of]
        return dataclasses.replace(
            model_loss,
            sums=("loss", "weight"),
            factor=self.weight,
            reported_as=None,
            curves={"loss": "mean distance from the teacher's outputs"},
        )

    def loss_sums(
        self, own: Objective, outputs: Mapping[str, Any], batch: Mapping[str, Any]
    ) -> dict[str, Any]:
        soft = _soft(own)
        targets = {n.removeprefix(TAUGHT): x for n, x in batch.items() if n.startswith(TAUGHT)}
        losses = soft.losses(outputs, targets, self.temperature)
        weights = batch[own.losses[soft.of].weights]
        if len(losses.shape) > len(weights.shape):  # independent classes: [B, C], [B]
            losses = ops.mean(losses, axis=-1)
        return weighted_sums("distillation", losses, weights)


def _soft(objective: Objective) -> SoftLoss:
    if objective.soft is None:
        raise ValueError("a model without a SoftLoss in its objective cannot learn from outputs")
    return objective.soft


@dataclasses.dataclass(frozen=True, eq=False)
class RelationTeacher(Teacher):
    """Teaches the relations in one of the teacher's layers to the student's last layer.

    The loss of the relation of projections i and j, as in MiniLMv2 (arXiv:2012.15828, section 3):

        1 / (A |x|) sum_a sum_t KL(R^T_a,t || R^S_a,t),  R = softmax(A_i A_j^T / sqrt(D))

    a is a relation head, t a token, |x| the number of tokens that are not padding. Tokens relate
    only to tokens of their own sequence. The losses of several relations are added up. MiniLMv2
    uses "qq", "kk" and "vv"; "qk" and "vv", with the number of relation heads equal to both models'
    attention heads, are MiniLM's attention distributions and value relations (arXiv:2002.10957,
    sections 3.1 and 3.2).

    Attributes:
        heads: A, a divisor of both models' H.
        layer: the number of the teacher's layer, from 1.
        student_layer: the number of the student's last layer.
        relations: two letters of `PROJECTIONS` each.
    """

    heads: int = 1
    layer: int = 1
    student_layer: int = 1
    relations: tuple[str, ...] = ("qq", "kk", "vv")

    def run(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        run_block, kept = record_projections(call_block, self.layer)
        self.model.encoder(batch, training=False, run_block=run_block)
        return kept

    def loss(self, own: Objective) -> Loss:
        return Loss(
            labels=(),
            weights="input_mask",
            sums=("loss", "weight"),
            factor=self.weight,
            curves={"loss": "mean distance from the teacher's relations"},
        )

    def loss_sums(
        self, own: Objective, outputs: Mapping[str, Any], batch: Mapping[str, Any]
    ) -> dict[str, Any]:
        bias = attention_bias(batch["input_mask"], batch.get("segment_index"))
        total: Any = 0.0
        for one, other in self.relations:
            log_p, log_q = (
                log_relations(
                    source[f"{prefix}{PROJECTIONS[one]}"],
                    source[f"{prefix}{PROJECTIONS[other]}"],
                    self.heads,
                    bias,
                )
                for source, prefix in ((batch, TAUGHT), (outputs, WATCHED))
            )
            total = total + ops.mean(_divergence(log_p, log_q), axis=1)  # [B, A, T] -> [B, T]
        return weighted_sums("distillation", total, batch["input_mask"])

    def watch(
        self, run_block: Callable[..., Any] = call_block
    ) -> tuple[Callable[..., Any], Callable[[], dict[str, Any]]]:
        recording, kept = record_projections(run_block, self.student_layer)
        return recording, lambda: {f"{WATCHED}{name}": value for name, value in kept.items()}
