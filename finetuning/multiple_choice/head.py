"""A head for BERT or ALBERT that chooses between options.

As in google-research/albert race_utils.py, the classifier's head computes one score per option, and
the softmax is over the options.

Shapes: B batch, C options, T tokens, H hidden.
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.layers import call_block
from bert_tf.objective import Objective
from finetuning import heads
from finetuning.inputs import ROW_INPUTS


@keras.saving.register_keras_serializable(package="finetuning")
class MultipleChoiceModel(heads.HeadModel):
    """An encoder with a head that scores options; loads checkpoints as `SequenceClassifier` does.

    Args:
        dropout: the rate of dropout on the pooled vector.

    Example:
        model = MultipleChoiceModel(AlbertModel(config))
        logits = model({"input_ids": ids})["logits"]  # [B, C, T] -> [B, C]
    """

    google_names = heads.GOOGLE_NAMES

    def __init__(
        self,
        encoder: keras.Model,
        dropout: float = heads.DROPOUT,
        name: str = "multiple_choice",
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, name, **kwargs)
        width = self.config.hidden_size
        self.head = heads.ProjectionHead(width, 1, dropout, self.dtype_policy, name="head")
        self.build()

    @property
    def objective(self) -> Objective:
        """Cross entropy over the options."""
        losses, sums = heads.CLASSIFICATION_LOSSES, heads.classification_sums
        return Objective(losses, sums, soft=heads.SOFT_CLASSES)

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder on its inputs [B, C, T], one row per option, and the head.

        Returns:
            "logits" [B, C] in at least float32.
        """
        options, length = ops.shape(inputs["input_ids"])[1:]
        rows = {
            name: ops.reshape(inputs[name], (-1, length))  # [B * C, T]
            for name in ROW_INPUTS
            if name in inputs
        }
        # The head reads only [CLS], so the last block runs only at that position.
        first = ops.zeros_like(rows["input_ids"][:, :1])  # [B * C, 1]
        encoded = self.encoder(rows, training=training, positions=first, run_block=run_block)
        logits = self.head(encoded["pooled_output"], training=training)  # [B * C, 1]
        return {"logits": ops.reshape(logits, (-1, options))}  # [B, C]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dropout": self.head.dropout.rate}


def from_settings(
    encoder: keras.Model, settings: Mapping[str, Any]
) -> tuple[MultipleChoiceModel, tuple[str, ...]]:
    """Returns the model that a folder's settings describe, with random weights, and no labels."""
    return MultipleChoiceModel(encoder), ()
