"""The head that classifies a sequence or gives it a number, on BERT and ALBERT alike.

As google-research/bert run_classifier.py and google-research/albert classifier_utils.py: the
pooled vector, dropout, one projection.

Shapes: B batch, T tokens, H hidden, C classes.
"""

import keras
from keras import ops

from bert_tf.layers import Dropout, run_block
from bert_tf.objective import Objective
from bert_tf.pretraining import cross_entropy

# Our variables (path below the model's own name) and Google's.
GOOGLE_NAMES = {
    "head/output_weights": "output_weights",
    "head/output_bias": "output_bias",
}

# As both reference repositories, whatever the configuration's own rates are. The table of
# ALBERT's paper has 0 for some tasks.
DROPOUT = 0.1

# As both reference repositories: not the configuration's initializer_range.
INITIAL_STDDEV = 0.02

# The weight of each example: 0 for one that only fills a batch.
WEIGHTS = {"label": "label_weights"}


class ClassificationHead(keras.layers.Layer):
    """Dropout, then a projection of the pooled vector, whose weights are [C, H] as Google's.

    In float32 at least: in bfloat16 a score of 4 has neighbours 0.03 away.
    """

    def __init__(self, hidden_size, classes, dropout, dtype_policy, name):
        # The precision of the weights: float32 under a mixed policy.
        super().__init__(name=name, dtype=dtype_policy.variable_dtype)
        self.hidden_size = hidden_size
        self.classes = classes
        self.dropout = Dropout(dropout, name="dropout")

    def build(self, input_shape=None):
        # autocast=False: the precision of the model around it is not for these.
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.classes, self.hidden_size),
            initializer=keras.initializers.TruncatedNormal(stddev=INITIAL_STDDEV),
            autocast=False,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.classes,), initializer="zeros", autocast=False
        )

    def call(self, pooled_output, training=None):
        """[B, H] -> [B, C] in the precision of the weights."""
        x = self.dropout(ops.cast(pooled_output, self.variable_dtype), training=training)
        return ops.matmul(x, ops.transpose(self.output_weights)) + self.output_bias


@keras.saving.register_keras_serializable(package="finetuning")
class SequenceClassifier(keras.Model):
    """An encoder with a classification head, or with a regression head where C is 1.

    `load_google_checkpoint(model.encoder, prefix)` starts from a pre-trained encoder, or from one
    that was trained on another task: the head stays new. `load_google_checkpoint(model, prefix)`
    takes the head along.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        classes: how many classes there are; 1 for regression, a number for each sequence.
        dropout: the rate of dropout on the pooled vector.

    Example:
        model = SequenceClassifier(BertModel(config), classes=3)
        load_google_checkpoint(model.encoder, "bert_model.ckpt")
        logits = model({"input_ids": ids})["logits"]
    """

    google_names = GOOGLE_NAMES

    def __init__(self, encoder, classes, dropout=DROPOUT, name="classifier", **kwargs):
        super().__init__(name=name, dtype=kwargs.pop("dtype", encoder.dtype_policy), **kwargs)
        if name == encoder.name:  # its variables could not be told from the encoder's
            raise ValueError(f"the model and its encoder need two names. Received: {name!r} twice")
        self.encoder = encoder
        self.config = encoder.config
        self.classes = classes
        self.head = ClassificationHead(
            self.config.hidden_size, classes, dropout, self.dtype_policy, name="head"
        )
        self.build()

    @property
    def objective(self):
        """Cross entropy of classes, the squared error of numbers."""
        if self.classes == 1:
            return Objective(WEIGHTS, ("loss", "weight"), regression_sums, denominators)
        return Objective(WEIGHTS, ("loss", "correct", "weight"), classification_sums, denominators)

    def build(self, input_shape=None):
        self.head.build()

    def call(self, inputs, training=None, run_block=run_block):
        """Runs the encoder with the head.

        Args:
            inputs: the encoder's inputs, a dict of [B, T] integers; packed rows have no place here.
            training: whether dropout is on.
            run_block: how each block is run; see `bert_tf.layers.run_block`.

        Returns:
            A dict: "logits" [B, C] in float32 at least; of a regression the number itself, [B, 1].
        """
        # Nothing but [CLS] is read, so the last block runs there alone.
        first = ops.zeros_like(inputs["input_ids"][:, :1])  # [B, 1]
        encoded = self.encoder(inputs, training=training, positions=first, run_block=run_block)
        return {"logits": self.head(encoded["pooled_output"], training=training)}

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "classes": self.classes,
            "dropout": self.head.dropout.rate,
        }

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(encoder, **{key: value for key, value in config.items() if key != "encoder"})


def classification_losses(outputs, batch):
    """The cross entropy of every example, in float32 at least.

    Args:
        outputs: what `SequenceClassifier` returns.
        batch: label_ids [B], the number of each example's class.

    Returns:
        [B].
    """
    return cross_entropy(batch["label_ids"], outputs["logits"])


def regression_losses(outputs, batch):
    """The squared error of every example, in float32 at least.

    Args:
        outputs: what `SequenceClassifier` with one class returns.
        batch: label_ids [B], the number that each example should get.

    Returns:
        [B].
    """
    logits = outputs["logits"][:, 0]  # [B, 1] -> [B]
    return ops.square(logits - ops.cast(batch["label_ids"], logits.dtype))


def classification_sums(outputs, batch):
    """Sums from which loss and accuracy follow, however the batch was split.

    Args:
        outputs: what `SequenceClassifier` returns.
        batch: label_ids [B] with label_weights [B].

    Returns:
        A dict of scalars: "label_loss", "label_correct", "label_weight".
    """
    losses = classification_losses(outputs, batch)
    weights = ops.cast(batch["label_weights"], losses.dtype)
    predictions = ops.argmax(outputs["logits"], axis=-1)  # [B]
    correct = ops.equal(predictions, ops.cast(batch["label_ids"], predictions.dtype))
    return {
        "label_loss": ops.sum(losses * weights),
        "label_correct": ops.sum(ops.cast(correct, losses.dtype) * weights),
        "label_weight": ops.sum(weights),
    }


def regression_sums(outputs, batch):
    """Sums from which the loss follows: "label_loss", "label_weight"."""
    losses = regression_losses(outputs, batch)
    weights = ops.cast(batch["label_weights"], losses.dtype)
    return {"label_loss": ops.sum(losses * weights), "label_weight": ops.sum(weights)}


def denominators(weights):
    """The loss is the mean over all examples of the global batch."""
    return {"label": weights["label"]}
