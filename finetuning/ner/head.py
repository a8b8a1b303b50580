"""The head that classifies every token, on BERT and ALBERT alike.

As google-research/bert's head for sequences, but at every position.

Shapes: B batch, T tokens, C classes.
"""

import functools

import keras
from keras import ops

from bert_tf.layers import call_block
from bert_tf.objective import Loss, Objective
from finetuning.classification.head import (
    SequenceClassifier,
    classification_sums,
    concatenated_layers,
)

LOSSES = {
    "label": Loss(
        labels=("token_label_ids",),
        weights="token_label_weights",  # 0 where nothing is to be predicted
        curves={"accuracy": "share of the labels that were predicted correctly"},
    )
}


@keras.saving.register_keras_serializable(package="finetuning")
class TokenClassifier(SequenceClassifier):
    """An encoder with a classification head at every position.

    Its weights have the shapes and the names of `SequenceClassifier`'s, "output_weights" [C, H]
    and "output_bias" [C], and checkpoints are loaded in the same way.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        classes: how many classes there are, at least 2.
        dropout: the rate of dropout on the vectors.
        freeze_encoder: as `SequenceClassifier` has it.
        feature_layers: likewise, but the head reads the layers' vectors of every token.

    Example:
        model = TokenClassifier(BertModel(config), classes=13)
        load_google_checkpoint(model.encoder, "bert_model.ckpt")
        logits = model({"input_ids": ids, "input_mask": mask})["logits"]
    """

    @property
    def objective(self):
        """Cross entropy, the mean over all tokens of the global batch that have a weight.

        A batch has token_label_ids [B, T] with token_label_weights [B, T]: 0 for [CLS], [SEP],
        padding.
        """
        return Objective(LOSSES, token_sums)

    def call(self, inputs, training=None, run_block=call_block):
        """Runs the encoder with the head.

        Args:
            inputs: the encoder's inputs, a dict of [B, T] integers.
            training: whether dropout is on.
            run_block: see `bert_tf.layers`.

        Returns:
            A dict: "logits" [B, T, C] in float32 at least.
        """
        encode = functools.partial(
            self.encoder,
            inputs,
            training=training and not self.freeze_encoder,
            run_block=run_block,
        )
        if self.feature_layers:
            vectors = concatenated_layers(encode, self.feature_layers)  # [B, T, L * H]
        else:
            vectors = encode()["sequence_output"]
        vectors = ops.stop_gradient(vectors) if self.freeze_encoder else vectors
        return {"logits": self.head(vectors, training=training)}


def token_sums(outputs, batch):
    """As `classification_sums`, over tokens.

    Args:
        outputs: what `TokenClassifier` returns.
        batch: token_label_ids [B, T] with token_label_weights [B, T].
    """
    labels = {name: batch[f"token_{name}"] for name in ("label_ids", "label_weights")}
    return classification_sums(outputs, labels)
