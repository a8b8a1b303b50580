"""Defines a head for BERT or ALBERT that predicts where an answer starts and ends in a text.

As in google-research/bert run_squad.py and google-research/albert run_squad_v1.py; `beam_head` has
the head of run_squad_v2.py.

Shapes: B batch, T tokens, H hidden.
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.distillation import soft_divergence
from bert_tf.layers import call_block
from bert_tf.objective import Loss, Objective, SoftLoss, weighted_sums
from bert_tf.pretraining import cross_entropy
from finetuning.heads import HeadModel, ProjectionHead

# Our variables (paths below the model's own name) -> Google's.
SPAN_NAMES = {
    "head/output_weights": "cls/squad/output_weights",
    "head/output_bias": "cls/squad/output_bias",
}

# The losses of the objective, by name.
SPAN_LOSSES = {"span": Loss(labels=("start_positions", "end_positions"), weights="span_weights")}


@keras.saving.register_keras_serializable(package="finetuning")
class SpanModel(HeadModel):
    """An encoder with BERT's head for SQuAD, which is also ALBERT's for SQuAD 1.1.

    The head is a projection to a start and an end logit per token. Checkpoints are loaded as for
    `finetuning.classification.head.SequenceClassifier`.

    Example:
        model = SpanModel(BertModel(config))
        start_logits = model({"input_ids": ids, "segment_ids": types})["start_logits"]
    """

    google_names = SPAN_NAMES

    def __init__(self, encoder: keras.Model, name: str = "spans", **kwargs: Any) -> None:
        super().__init__(encoder, name, **kwargs)
        self.head = ProjectionHead(self.config.hidden_size, 2, None, self.dtype_policy, name="head")
        self.build()

    @property
    def objective(self) -> Objective:
        """The mean of the cross entropies of start and end."""
        return Objective(SPAN_LOSSES, span_sums, soft=SoftLoss("span", soft_spans))

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder and the head on inputs [B, T], which must not be packed.

        Returns:
            "start_logits" and "end_logits" [B, T] in float32 or wider.
        """
        x = self.encoder(inputs, training=training, run_block=run_block)["sequence_output"]
        logits = self.head(x)  # [B, T, 2]
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}  # [B, T] each


def span_losses(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
    """Returns the loss of every example's answer, [B] in float32 or wider.

    `outputs` are from a `SpanModel`, or from a `BeamSpanModel` with start_positions.
    """
    start = cross_entropy(batch["start_positions"], outputs["start_logits"])
    return (start + cross_entropy(batch["end_positions"], outputs["end_logits"])) * 0.5


def soft_spans(outputs: Mapping[str, Any], targets: Mapping[str, Any], temperature: float) -> Any:
    """Returns the mean of the `soft_divergence` of starts and ends, [B] in float32 or wider."""
    names = ("start_logits", "end_logits")
    return 0.5 * sum(soft_divergence(outputs[n], targets[n], temperature) for n in names)


def span_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the `weighted_sums` "span_..." of `span_losses`; a correct answer needs both ends."""
    correct = True
    for end in ("start", "end"):
        predictions = ops.argmax(outputs[f"{end}_logits"], axis=-1)  # [B]
        positions = ops.cast(batch[f"{end}_positions"], predictions.dtype)
        correct = ops.logical_and(correct, ops.equal(predictions, positions))
    return weighted_sums("span", span_losses(outputs, batch), batch["span_weights"], correct)
