"""Defines a head for BERT or ALBERT that classifies every token.

It applies the projection of google-research/bert's sequence classifier at every position.

Shapes: B batch, T tokens, H hidden, C classes, L layers that the head reads, W width of its input.
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras

from bert_tf.layers import call_block
from bert_tf.objective import Loss, Objective
from finetuning import heads
from finetuning.settings import split_names, split_numbers

LOSSES = {
    "label": Loss(
        labels=("token_label_ids",),
        weights="token_label_weights",  # 0 where nothing is to be predicted
        curves={"accuracy": "share of the labels that were predicted correctly"},
    )
}


@keras.saving.register_keras_serializable(package="finetuning")
class TokenClassifier(heads.LayersModel):
    """An encoder with a classification head at every position.

    Its weights have the shapes and names of `SequenceClassifier`'s, "output_weights" [C, W] and
    "output_bias" [C], and checkpoints are loaded in the same way.

    Args:
        encoder, dropout, freeze_encoder: as for `finetuning.heads.LayersModel`.
        classes: the number of classes, at least 2.
        feature_layers: indices of layers, 0 for the embedding output, -1 for the last. The head
            reads their concatenated vectors, [B, T, L * H], instead of the last layer's, [B, T, H].

    Example:
        model = TokenClassifier(BertModel(config), classes=13)
        load_google_checkpoint(model.encoder, "bert_model.ckpt")
        logits = model({"input_ids": ids, "input_mask": mask})["logits"]
    """

    @property
    def objective(self) -> Objective:
        """Cross entropy, the weighted mean over all tokens of the global batch.

        A batch has token_label_ids [B, T] and token_label_weights [B, T], 0 for [CLS], [SEP] and
        padding.
        """
        return Objective(LOSSES, token_sums, soft=heads.SOFT_CLASSES)

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder and the head on inputs [B, T].

        Returns:
            "logits" [B, T, C] in float32 or wider.
        """
        vectors = self.encode(inputs, training, run_block=run_block)
        if not self.feature_layers:
            vectors = vectors["sequence_output"]  # [B, T, H]
        return self.logits(vectors, training)


def token_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `classification_sums` over tokens; token_label_ids and _weights are [B, T]."""
    labels = {name: batch[f"token_{name}"] for name in ("label_ids", "label_weights")}
    return heads.classification_sums(outputs, labels)


def from_settings(
    encoder: keras.Model, settings: Mapping[str, Any]
) -> tuple[TokenClassifier, tuple[str, ...]]:
    """Returns the model that a folder's settings describe, with random weights, and its tags."""
    labels = split_names(settings["labels"])
    layers = split_numbers(settings["feature_layers"])
    return TokenClassifier(encoder, len(labels), feature_layers=layers), labels
