"""A head for BERT or ALBERT that predicts where an answer starts and ends in a text.

As google-research/bert run_squad.py and google-research/albert run_squad_v1.py; `beam_head` has the
head of run_squad_v2.py.

Shapes: B batch, T tokens, H hidden.
"""

import keras
from keras import ops

from bert_tf.encoder import EncoderModel
from bert_tf.layers import call_block
from bert_tf.objective import Loss, Objective
from bert_tf.pretraining import cross_entropy

# Our variables (paths below the model's own name) -> Google's.
SPAN_NAMES = {
    "head/output_weights": "cls/squad/output_weights",
    "head/output_bias": "cls/squad/output_bias",
}

# As in both reference repositories: not the configuration's initializer_range.
INITIAL_STDDEV = 0.02

# The losses of the objective, by name.
SPAN_LOSSES = {"span": Loss(labels=("start_positions", "end_positions"), weights="span_weights")}


class SpanHead(keras.layers.Layer):
    """A projection to a start and an end logit per token; its weights are [2, H], as Google's.

    It computes in float32 at least: in bfloat16 neighbouring logits around 4 are 0.03 apart.
    """

    def __init__(self, hidden_size, dtype_policy, name):
        # The precision of the weights, which is float32 under a mixed policy.
        super().__init__(name=name, dtype=dtype_policy.variable_dtype)
        self.hidden_size = hidden_size

    def build(self, input_shape=None):
        # autocast=False: these keep their precision inside a model that computes in bfloat16.
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(2, self.hidden_size),
            initializer=keras.initializers.TruncatedNormal(stddev=INITIAL_STDDEV),
            autocast=False,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(2,), initializer="zeros", autocast=False
        )

    def call(self, x):
        """[B, T, H] -> start logits [B, T] and end logits [B, T]."""
        x = ops.cast(x, self.variable_dtype)
        logits = ops.matmul(x, ops.transpose(self.output_weights)) + self.output_bias  # [B, T, 2]
        return logits[..., 0], logits[..., 1]  # [B, T] each


@keras.saving.register_keras_serializable(package="finetuning")
class SpanModel(EncoderModel):
    """An encoder with BERT's head for SQuAD, which is also ALBERT's for SQuAD 1.1.

    `load_google_checkpoint(model.encoder, prefix)` loads a pre-trained encoder and leaves the head
    new, `load_google_checkpoint(model, prefix)` loads the head too.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.

    Example:
        model = SpanModel(BertModel(config))
        start_logits = model({"input_ids": ids, "segment_ids": types})["start_logits"]
    """

    google_names = SPAN_NAMES

    def __init__(self, encoder, name="spans", **kwargs):
        super().__init__(encoder, name, **kwargs)
        self.head = SpanHead(self.config.hidden_size, self.dtype_policy, name="head")
        self.build()

    def build(self, input_shape=None):
        self.head.build()

    @property
    def objective(self):
        """The mean of the cross entropies of start and end."""
        return Objective(SPAN_LOSSES, span_sums)

    def call(self, inputs, training=None, run_block=call_block):
        """Runs the encoder with the head.

        Args:
            inputs: the encoder's inputs, a dict of [B, T] integers; rows must not be packed.
            training: whether dropout is on.
            run_block: see `bert_tf.layers`.

        Returns:
            A dict: "start_logits" and "end_logits" [B, T] in float32 at least.
        """
        x = self.encoder(inputs, training=training, run_block=run_block)["sequence_output"]
        start_logits, end_logits = self.head(x)  # [B, T] each
        return {"start_logits": start_logits, "end_logits": end_logits}


def span_losses(outputs, batch):
    """The loss of every example's answer, in float32 at least.

    Args:
        outputs: what `SpanModel` returns, or `BeamSpanModel` with start_positions.
        batch: start_positions and end_positions [B].

    Returns:
        [B].
    """
    start = cross_entropy(batch["start_positions"], outputs["start_logits"])
    return (start + cross_entropy(batch["end_positions"], outputs["end_logits"])) * 0.5


def span_sums(outputs, batch):
    """Sums from which loss and accuracy follow, no matter how a batch is split.

    Args:
        outputs: as for `span_losses`.
        batch: start_positions, end_positions and span_weights [B].

    Returns:
        A dict of scalars: "span_loss", "span_correct" (both ends are correct), "span_weight".
    """
    correct = [
        ops.equal(ops.cast(batch[f"{end}_positions"], "int32"), _argmax(outputs[f"{end}_logits"]))
        for end in ("start", "end")
    ]
    return weighted_sums("span", span_losses(outputs, batch), ops.logical_and(*correct), batch)


def _argmax(logits):
    return ops.cast(ops.argmax(logits, axis=-1), "int32")


def weighted_sums(name, losses, correct, batch):
    """Sums over the examples of a batch: NAME_loss, NAME_correct and NAME_weight."""
    weights = ops.cast(batch["span_weights"], losses.dtype)
    return {
        f"{name}_loss": ops.sum(losses * weights),
        f"{name}_correct": ops.sum(ops.cast(correct, losses.dtype) * weights),
        f"{name}_weight": ops.sum(weights),
    }
