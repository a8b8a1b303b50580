"""Holds what the tasks' heads share: projection, checkpoint names, poolings and losses.

Shapes: B batch, T tokens, H hidden, C classes, L layers that the head reads, W width of its input.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_common.errors import InputError
from bert_tf.distillation import soft_divergence
from bert_tf.dropout import Dropout
from bert_tf.encoder import EncoderModel
from bert_tf.objective import Loss, SoftLoss, weighted_sums
from bert_tf.pretraining import cross_entropy

# The names of our variables (paths below the model's name) -> Google's names.
GOOGLE_NAMES = {"head/output_weights": "output_weights", "head/output_bias": "output_bias"}

# As in both reference repositories, independently of the configuration's rates; also the
# classifier's rate in table 14 of ALBERT's paper, whose other rate is the encoder's.
DROPOUT = 0.1

# As in both reference repositories, which do not use the configuration's initializer_range here.
INITIAL_STDDEV = 0.02

# The losses of a classifier's objective, by name.
CLASSIFICATION_LOSSES = {
    "label": Loss(
        labels=("label_ids",),
        weights="label_weights",
        curves={"accuracy": "share of the labels that were predicted correctly"},
    )
}


def mean_pooling(values: Any, mask: Any) -> Any:
    """Computes the mean over all tokens, [CLS] and [SEP] included: [B, T, ...] -> [B, ...]."""
    mask = _as_wide(mask, values)
    return ops.sum(values * mask, axis=1) / ops.sum(mask, axis=1)


def max_pooling(values: Any, mask: Any) -> Any:
    """Computes the maximum over all tokens, [CLS] and [SEP] included: [B, T, ...] -> [B, ...]."""
    return ops.max(ops.where(_as_wide(mask, values) > 0, values, -1e30), axis=1)


def _as_wide(mask, values):
    """Reshapes a mask [B, T] to [B, T, 1, ...], in the precision of values [B, T, ...]."""
    return ops.expand_dims(ops.cast(mask, values.dtype), tuple(range(2, len(values.shape))))


# name -> a function from values [B, T, ...] and a mask [B, T] to one value per row, [B, ...].
POOLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "mean": mean_pooling,
    "cls": lambda values, mask: values[:, 0],
    "max": max_pooling,
}


class ProjectionHead(keras.layers.Layer):
    """Applies dropout, then a projection whose weights are [C, W], as in Google's checkpoints.

    Computes in at least float32, because neighbouring bfloat16 scores around 4 are 0.03 apart. If
    `dropout` is None, there is no dropout layer.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        dropout: float | None,
        dtype_policy: keras.DTypePolicy,
        name: str,
    ) -> None:
        # The precision of the weights, which is float32 under a mixed policy.
        super().__init__(name=name, dtype=dtype_policy.variable_dtype)
        self.width = width
        self.classes = classes
        self.dropout = None if dropout is None else Dropout(dropout, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        # autocast=False: the weights keep their precision in a model that computes in bfloat16.
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.classes, self.width),
            initializer=keras.initializers.TruncatedNormal(stddev=INITIAL_STDDEV),
            autocast=False,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.classes,), initializer="zeros", autocast=False
        )

    def call(self, vectors: Any, training: bool | None = None) -> Any:
        """Computes logits in the precision of the weights: [..., W] -> [..., C]."""
        x = ops.cast(vectors, self.variable_dtype)
        if self.dropout is not None:
            x = self.dropout(x, training=training)
        return ops.matmul(x, ops.transpose(self.output_weights)) + self.output_bias


class HeadModel(EncoderModel):
    """An encoder with a layer `head`, which a subclass makes before it calls `build`."""

    head: Any

    def build(self, input_shape: Any = None) -> None:
        self.head.build()


class LayersModel(HeadModel):
    """An encoder with a `ProjectionHead` that can read any of its layers.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        classes: C.
        dropout: the rate of dropout on the head's input.
        freeze_encoder: whether only the head is trained; the encoder then runs without dropout.
        feature_layers: indices of layers as papers count them: 0 is the embedding output (ALBERT's
            after its projection), 1 the first layer, -1 the last; empty: the head's usual input.
    """

    google_names = GOOGLE_NAMES

    def __init__(
        self,
        encoder: keras.Model,
        classes: int,
        dropout: float = DROPOUT,
        *,
        freeze_encoder: bool = False,
        feature_layers: Sequence[int] = (),
        name: str = "classifier",
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, name, **kwargs)
        self.classes = classes
        self.freeze_encoder = freeze_encoder
        self.feature_layers = tuple(feature_layers)
        count = self.config.num_block_calls + 1
        if not all(-count <= layer < count for layer in self.feature_layers):
            raise InputError(
                f"feature_layers must be from {-count} to {count - 1}, 0 for the embedding output. "
                f"Received: {', '.join(map(str, self.feature_layers))}"
            )
        width = self.config.hidden_size * max(1, len(self.feature_layers))
        self.head = ProjectionHead(width, classes, dropout, self.dtype_policy, name="head")
        self.build()

    def encode(self, inputs: Mapping[str, Any], training: bool | None, **options: Any) -> Any:
        """Runs the encoder with `options` and returns its outputs.

        With `feature_layers`, returns these layers' concatenated vectors instead, [B, T, L * H].
        """
        trained = training and not self.freeze_encoder
        if not self.feature_layers:
            return self.encoder(inputs, training=trained, **options)
        options["positions"] = None
        outputs = self.encoder(inputs, training=trained, return_all_layers=True, **options)
        layers = [outputs["encoder_input"], *outputs["encoder_outputs"]]  # of each [B, T, H]
        return ops.concatenate([layers[i] for i in self.feature_layers], axis=-1)

    def logits(self, vectors: Any, training: bool | None) -> dict[str, Any]:
        """Returns "logits" [..., C] of vectors [..., W]; a frozen encoder gets no gradient."""
        # A weight without a gradient is neither updated nor decayed.
        vectors = ops.stop_gradient(vectors) if self.freeze_encoder else vectors
        return {"logits": self.head(vectors, training=training)}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "classes": self.classes,
            "dropout": self.head.dropout.rate,
            "freeze_encoder": self.freeze_encoder,
            "feature_layers": self.feature_layers,
        }


def classification_losses(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
    """Returns each example's cross entropy, [B] in at least float32; label_ids are classes [B]."""
    return cross_entropy(batch["label_ids"], outputs["logits"])


def classification_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `weighted_sums` of `classification_losses`; label_ids and label_weights are [B]."""
    predictions = ops.argmax(outputs["logits"], axis=-1)  # [B]
    correct = ops.equal(predictions, ops.cast(batch["label_ids"], predictions.dtype))
    losses = classification_losses(outputs, batch)
    return weighted_sums("label", losses, batch["label_weights"], correct)


def _soft_classes(outputs, targets, temperature):
    """Computes the divergence of logits [..., C] from the teacher's logits, [...]."""
    return soft_divergence(outputs["logits"], targets["logits"], temperature)


# The distillation loss of a classifier, for the predictions whose loss is "label".
SOFT_CLASSES = SoftLoss("label", _soft_classes)
