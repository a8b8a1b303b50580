"""A head for BERT or ALBERT that classifies a sequence or predicts a score for it.

As in google-research/bert run_classifier.py and google-research/albert classifier_utils.py, it
applies dropout and one projection to the pooled vector or, as in the feature-based approach of
BERT's paper (arXiv:1810.04805, section 5.3), to the concatenated vectors of several layers.

Shapes: B batch, T tokens, H hidden, C classes, L layers that the head reads, W width of its input.
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.distillation import soft_binary_divergence
from bert_tf.layers import call_block
from bert_tf.objective import Loss, Objective, SoftLoss, weighted_sums
from finetuning import heads
from finetuning.datasets import DATASETS
from finetuning.settings import split_names, split_numbers

REGRESSION_LOSSES = {
    "label": Loss(labels=("label_ids",), weights="label_weights", sums=("loss", "weight"))
}


@keras.saving.register_keras_serializable(package="finetuning")
class SequenceClassifier(heads.LayersModel):
    """An encoder with a classification head, or with a regression head if C is 1.

    `load_google_checkpoint(model.encoder, prefix)` loads a pre-trained encoder, or one that was
    trained on another task, but not the head. `load_google_checkpoint(model, prefix)` loads the
    head too.

    Args:
        encoder, dropout, freeze_encoder: as for `finetuning.heads.LayersModel`.
        classes: the number of classes; 1 for regression, which predicts one score.
        multi_label: whether a sequence may have any number of the classes, including none.
        feature_layers: indices of layers, 0 the embedding output, -1 the last. The head reads the
            mean of their vectors over all tokens, [B, L * H], instead of the pooled vector [B, H].

    Example:
        model = SequenceClassifier(BertModel(config), classes=3)
        load_google_checkpoint(model.encoder, "bert_model.ckpt")
        logits = model({"input_ids": ids})["logits"]
    """

    def __init__(
        self, encoder: keras.Model, *arguments: Any, multi_label: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(encoder, *arguments, **kwargs)
        self.multi_label = multi_label

    @property
    def objective(self) -> Objective:
        """Cross entropy; binary cross entropy if multi-label; squared error for regression."""
        losses = heads.CLASSIFICATION_LOSSES
        if self.multi_label:
            return Objective(losses, multi_label_sums, soft=SoftLoss("label", _soft_labels))
        if self.classes == 1:
            soft = SoftLoss("label", _soft_scores)
            return Objective(REGRESSION_LOSSES, regression_sums, soft=soft)
        return Objective(losses, heads.classification_sums, soft=heads.SOFT_CLASSES)

    def example_losses(self, outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
        """Returns the training loss of every example, [B]."""
        if self.multi_label:
            return multi_label_losses(outputs, batch)
        losses = regression_losses if self.classes == 1 else heads.classification_losses
        return losses(outputs, batch)

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder on its inputs [B, T], not packed, and the head.

        Returns:
            "logits" [B, C] in at least float32; for regression the score itself, [B, 1].
        """
        # The pooled head reads only [CLS], so the last block runs only at that position.
        first = ops.zeros_like(inputs["input_ids"][:, :1])  # [B, 1]
        encoded = self.encode(inputs, training, run_block=run_block, positions=first)
        if self.feature_layers:
            mask = inputs.get("input_mask")
            mask = ops.ones_like(inputs["input_ids"]) if mask is None else mask
            vectors = heads.mean_pooling(encoded, mask)  # [B, L * H]
        else:
            vectors = encoded["pooled_output"]  # [B, H]
        return self.logits(vectors, training)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "multi_label": self.multi_label}


def regression_losses(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
    """Returns each example's squared error, [B] in at least float32; label_ids are scores [B]."""
    logits = outputs["logits"][:, 0]  # [B, 1] -> [B]
    return ops.square(logits - ops.cast(batch["label_ids"], logits.dtype))


def _soft_scores(outputs, targets, temperature):
    """Returns the squared distance from the teacher's scores, [B]; `temperature` is ignored."""
    return regression_losses(outputs, {"label_ids": targets["logits"][:, 0]})


def _soft_labels(outputs, targets, temperature):
    """Returns the divergence from the teacher for each class separately, [B, C]."""
    return soft_binary_divergence(outputs["logits"], targets["logits"], temperature)


def multi_label_losses(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
    """Returns each example's mean binary cross entropy over the classes, [B] in at least float32.

    label_ids are [B, C], 1 for the classes that an example has, 0 for the others.
    """
    return ops.mean(_label_losses(outputs, batch), axis=-1)  # [B]


def _label_losses(outputs, batch):
    """Returns the binary cross entropy of every class of every example, [B, C]."""
    logits = outputs["logits"]
    labels = ops.cast(batch["label_ids"], logits.dtype)
    return ops.softplus(logits) - labels * logits  # [B, C]


def multi_label_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `weighted_sums` of `multi_label_losses`; an example is correct if all classes are.

    With label_weights [B, C] instead of [B], every label counts separately.
    """
    right = ops.equal(outputs["logits"] > 0, batch["label_ids"] > 0)  # [B, C]
    weights = batch["label_weights"]
    if len(weights.shape) == 2:  # [B, C]: every label has a weight of its own
        return weighted_sums("label", _label_losses(outputs, batch), weights, right)
    losses = multi_label_losses(outputs, batch)
    return weighted_sums("label", losses, weights, ops.all(right, axis=-1))


def regression_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `weighted_sums` of `regression_losses`, without "label_correct"."""
    return weighted_sums("label", regression_losses(outputs, batch), batch["label_weights"])


def from_settings(
    encoder: keras.Model, settings: Mapping[str, Any]
) -> tuple[SequenceClassifier, tuple[str, ...]]:
    """Returns the model that a folder's settings describe, with random weights, and its labels."""
    dataset = DATASETS.get(settings["task_name"])
    if dataset:
        labels, multi_label = dataset.labels, dataset.multi_label
    else:
        labels = split_names(settings["labels"])
        if settings["task_type"] == "regression":  # whose labels earlier versions recorded
            labels = ()
        multi_label = settings["task_type"] == "multi_label"
    layers = split_numbers(settings["feature_layers"])
    classes = max(1, len(labels))
    return SequenceClassifier(
        encoder, classes, multi_label=multi_label, feature_layers=layers
    ), labels
