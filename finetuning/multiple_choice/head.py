"""The head that chooses between options, on BERT and ALBERT alike.

As google-research/albert race_utils.py: the classifier's head gives every option one score, and
the softmax is over the options.

Shapes: B batch, C choices, T tokens, H hidden.
"""

import keras
from keras import ops

from bert_tf.encoder import EncoderModel
from bert_tf.layers import call_block
from bert_tf.objective import Objective
from finetuning.classification.head import (
    CLASSIFICATION_LOSSES,
    DROPOUT,
    GOOGLE_NAMES,
    ClassificationHead,
    classification_sums,
)

# What is a row for each option.
ROWS = ("input_ids", "input_mask", "segment_ids")


@keras.saving.register_keras_serializable(package="finetuning")
class MultipleChoiceModel(EncoderModel):
    """An encoder with a head that scores options.

    `load_google_checkpoint(model.encoder, prefix)` starts from a pre-trained encoder,
    `load_google_checkpoint(model, prefix)` takes the head along.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        dropout: the rate of dropout on the pooled vector.

    Example:
        model = MultipleChoiceModel(AlbertModel(config))
        logits = model({"input_ids": ids})["logits"]  # [B, C, T] -> [B, C]
    """

    google_names = GOOGLE_NAMES

    def __init__(self, encoder, dropout=DROPOUT, name="multiple_choice", **kwargs):
        super().__init__(encoder, name, **kwargs)
        self.head = ClassificationHead(
            self.config.hidden_size, 1, dropout, self.dtype_policy, name="head"
        )
        self.build()

    @property
    def objective(self):
        """Cross entropy over the options."""
        return Objective(CLASSIFICATION_LOSSES, classification_sums)

    def build(self, input_shape=None):
        self.head.build()

    def call(self, inputs, training=None, run_block=call_block):
        """Runs the encoder with the head, every option a row of its own.

        Args:
            inputs: the encoder's inputs, a dict of [B, C, T] integers.
            training: whether dropout is on.
            run_block: see `bert_tf.layers`.

        Returns:
            A dict: "logits" [B, C] in float32 at least.
        """
        choices, length = inputs["input_ids"].shape[1:]
        rows = {
            name: ops.reshape(inputs[name], (-1, length))  # [B * C, T]
            for name in ROWS
            if name in inputs
        }
        # Nothing but [CLS] is read, so the last block runs there alone.
        first = ops.zeros_like(rows["input_ids"][:, :1])  # [B * C, 1]
        encoded = self.encoder(rows, training=training, positions=first, run_block=run_block)
        logits = self.head(encoded["pooled_output"], training=training)  # [B * C, 1]
        return {"logits": ops.reshape(logits, (-1, choices))}

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.head.dropout.rate,
        }
