"""The head that classifies every token, on BERT and ALBERT alike.

As google-research/bert's head for sequences, but at every position.

Shapes: B batch, T tokens, C classes.
"""

import keras

from bert_tf.layers import run_block
from bert_tf.objective import Objective
from finetuning.heads import WEIGHTS, SequenceClassifier, classification_sums, denominators


@keras.saving.register_keras_serializable(package="finetuning")
class TokenClassifier(SequenceClassifier):
    """An encoder with a classification head at every position.

    Its weights have the shapes and the names of `SequenceClassifier`'s, "output_weights" [C, H]
    and "output_bias" [C], and checkpoints are loaded in the same way.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        classes: how many classes there are, at least 2.
        dropout: the rate of dropout on the vectors.

    Example:
        model = TokenClassifier(BertModel(config), classes=13)
        load_google_checkpoint(model.encoder, "bert_model.ckpt")
        logits = model({"input_ids": ids, "input_mask": mask})["logits"]
    """

    @property
    def objective(self):
        """Cross entropy, the mean over all tokens of the global batch that have a weight.

        A batch has label_ids [B, T] with label_weights [B, T]: 0 for [CLS], [SEP], padding.
        """
        return Objective(WEIGHTS, ("loss", "correct", "weight"), classification_sums, denominators)

    def call(self, inputs, training=None, run_block=run_block):
        """Runs the encoder with the head.

        Args:
            inputs: the encoder's inputs, a dict of [B, T] integers.
            training: whether dropout is on.
            run_block: how each block is run; see `bert_tf.layers.run_block`.

        Returns:
            A dict: "logits" [B, T, C] in float32 at least.
        """
        encoded = self.encoder(inputs, training=training, run_block=run_block)
        return {"logits": self.head(encoded["sequence_output"], training=training)}
