"""The pre-training heads and losses for masked words and sentence pairs.

Shapes: B batch, T tokens, H hidden, E embedding, V vocabulary, P predictions,
S sequences of a packed row.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.distillation import soft_divergence
from bert_tf.encoder import EncoderModel, HeadOutput
from bert_tf.layers import LayerNorm, Shape, activation_function, call_block, dense, initializer
from bert_tf.objective import Loss, Objective, SoftLoss, weighted_sums

# Our variable names (the path below the model's own name) -> Google's, for both BERT and ALBERT;
# {w} as in `bert_tf.model`.
GOOGLE_NAMES = {
    "masked_lm/transform/{w}": "cls/predictions/transform/dense/{w}",
    "masked_lm/layer_norm/{w}": "cls/predictions/transform/LayerNorm/{w}",
    "masked_lm/output_bias": "cls/predictions/output_bias",
    "next_sentence/output_weights": "cls/seq_relationship/output_weights",
    "next_sentence/output_bias": "cls/seq_relationship/output_bias",
}

# As in google-research/bert; it avoids a division by zero for a batch without predictions.
MASKED_LM_EPSILON = 1e-5

LOSSES = {
    "masked_lm": Loss(
        labels=("masked_lm_ids",),
        weights="masked_lm_weights",
        epsilon=MASKED_LM_EPSILON,
        curves={
            "loss": "mean over the masked words",
            "accuracy": "share of the masked words that were predicted correctly",
        },
    ),
    "next_sentence": Loss(
        labels=("next_sentence_labels",),
        weights="next_sentence_weights",
        curves={
            "loss": "mean over the sentence pairs",
            "accuracy": "share of the sentence pairs that were classified correctly",
        },
    ),
}


class MaskedLmHead(keras.layers.Layer):
    """Computes vocabulary logits at the masked positions, tied to the word embeddings."""

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        policy, activation = self.dtype_policy, activation_function(config.hidden_act)
        self.transform = dense(config.embedding_size, config, "transform", activation, policy)
        self.layer_norm = LayerNorm(policy, epsilon=config.layer_norm_eps)

    def build(self, input_shape: Shape | None = None) -> None:
        self.transform.build((None, self.config.hidden_size))
        self.layer_norm.build((None, self.config.embedding_size))
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.config.vocab_size,), initializer="zeros"
        )

    def call(self, masked_output: Any, word_embeddings: Any) -> Any:
        """Maps masked positions' vectors [B, P, H] and the table [V, E] to logits [B, P, V]."""
        # Flattened to one matrix, because that product is a single call of the fast kernel.
        x = ops.reshape(masked_output, (-1, self.config.hidden_size))  # [B * P, H]
        x = self.layer_norm(self.transform(x))  # [B * P, E]
        table = ops.cast(word_embeddings, self.compute_dtype)
        logits = ops.matmul(ops.cast(x, self.compute_dtype), ops.transpose(table))
        logits = logits + self.output_bias  # [B * P, V]
        return ops.reshape(logits, (-1, ops.shape(masked_output)[1], self.config.vocab_size))


class NextSentenceHead(keras.layers.Layer):
    """Computes two logits per pooled vector: is B next (BERT), are A and B in order (ALBERT)."""

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    def build(self, input_shape: Shape | None = None) -> None:
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(2, self.config.hidden_size),
            initializer=initializer(self.config),
        )
        self.output_bias = self.add_weight(name="output_bias", shape=(2,), initializer="zeros")

    def call(self, pooled_output: Any) -> Any:
        """Maps [B, H] to [B, 2] or [B, S, H] to [B, S, 2]; weights are [2, H], as in Google's."""
        return ops.matmul(pooled_output, ops.transpose(self.output_weights)) + self.output_bias


@keras.saving.register_keras_serializable(package="bert_tf")
class PretrainingModel(EncoderModel):
    """An encoder, a `BertModel` or an `AlbertModel`, with both pre-training heads.

    Args:
        sentence_objective: the name of the sentence pairs' loss and accuracy, "next_sentence" or
            "sentence_order"; None: the objective that the encoder's authors used.
    """

    google_names = GOOGLE_NAMES

    def __init__(
        self,
        encoder: keras.Model,
        name: str = "pretraining",
        *,
        sentence_objective: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, name, **kwargs)
        self.sentence_objective = sentence_objective or encoder.sentence_objective
        policy = self.dtype_policy
        self.masked_lm = MaskedLmHead(self.config, name="masked_lm", dtype=policy)
        self.next_sentence = NextSentenceHead(self.config, name="next_sentence", dtype=policy)
        self.build()

    @property
    def objective(self) -> Objective:
        """The objective: masked words, and sentence pairs if the batch has labels for them."""
        return pretraining_objective(self.sentence_objective)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "sentence_objective": self.sentence_objective}

    def build(self, input_shape: Shape | None = None) -> None:
        self.masked_lm.build()
        self.next_sentence.build()

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder and both heads.

        Args:
            inputs: the encoder's inputs and masked_lm_positions [B, P], integers below T.
            training: whether dropout is on.
            run_block: see `bert_tf.layers`.

        Returns:
            A dict with "masked_lm_logits" [B, P, V] and "next_sentence_logits" [B, 2] (packed
            rows: [B, S, 2]).
        """
        positions, table = inputs["masked_lm_positions"], self.encoder.embeddings.word_embeddings
        encoded = self.encoder(inputs, training=training, positions=positions, run_block=run_block)
        return {
            "masked_lm_logits": self.masked_lm(encoded["sequence_output"], table),
            "next_sentence_logits": self.next_sentence(encoded["pooled_output"]),
        }

    def head_outputs(self) -> dict[str, HeadOutput]:
        """Returns the outputs for masked words, and for sentence pairs if the encoder has them."""
        head, pairs, table = self.masked_lm, self.next_sentence, self.encoder.embeddings
        words = HeadOutput(
            ("masked_lm",), lambda x: head(x["sequence_output"], table.word_embeddings)
        )
        parts = ("next_sentence", "pooler") if self.config.has_pooler else ("next_sentence",)
        of_pairs = HeadOutput(parts, lambda x: pairs(x["pooled_output"]))
        own = {"next_sentence_logits": of_pairs} if self.encoder.sentence_objective else {}
        return {"masked_lm_logits": words, **own}


def example_losses(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Computes every prediction's loss, in float32 at least, from a `PretrainingModel`'s outputs.

    Args:
        batch: masked_lm_ids [B, P] and next_sentence_labels [B, 1] or [B] (packed rows:
            [B, S]), which are missing in records made without a sentence objective.

    Returns:
        "masked_lm" [B, P], and "next_sentence" [B] or [B, S] if there are labels.
    """
    losses = {"masked_lm": cross_entropy(batch["masked_lm_ids"], outputs["masked_lm_logits"])}
    if "next_sentence_labels" in batch:
        logits = outputs["next_sentence_logits"]
        labels = ops.reshape(batch["next_sentence_labels"], ops.shape(logits)[:-1])  # [B] or [B, S]
        losses["next_sentence"] = cross_entropy(labels, logits)
    return losses


def cross_entropy(labels: Any, logits: Any) -> Any:
    """Computes the labels' negative log likelihoods: [...] integers and [..., classes] -> [...]."""
    logits = ops.cast(logits, keras.backend.result_type(logits.dtype, "float32"))
    return keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def most_likely(logits: Any) -> Any:
    """Returns the class with the largest logit, the first if tied: [..., classes] -> [...] int32.

    Like `ops.argmax`, but in two plain reductions: XLA on a CPU compiles argmax as a reduction of
    (value, index) pairs, which took a quarter of the head's forward and backward time.
    """
    classes = ops.shape(logits)[-1]
    is_largest = ops.equal(logits, ops.max(logits, axis=-1, keepdims=True))
    return ops.min(ops.where(is_largest, ops.arange(classes), classes - 1), axis=-1)


def loss_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Computes sums from which losses and accuracies follow, however the batch is split.

    Args:
        batch: as for `example_losses`, with masked_lm_weights [B, P], and if there are labels,
            next_sentence_weights [B] (packed rows: [B, S]), 0 for an example that only fills a
            batch.

    Returns:
        Scalars summed over the batch: "_loss", "_correct" and "_weight" of "masked_lm" and, if
        there are labels, of "next_sentence".
    """
    sums: dict[str, Any] = {}
    for name, losses in example_losses(outputs, batch).items():
        (labels_name,) = LOSSES[name].labels
        predictions = most_likely(outputs[f"{name}_logits"])
        labels = ops.reshape(batch[labels_name], ops.shape(predictions))
        correct = ops.equal(predictions, ops.cast(labels, predictions.dtype))
        sums |= weighted_sums(name, losses, batch[LOSSES[name].weights], correct)
    return sums


def piece_losses(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Returns masked tokens' ids, losses and weights, [B, P] each; arguments as for `loss_sums`."""
    losses = cross_entropy(batch["masked_lm_ids"], outputs["masked_lm_logits"])
    return batch["masked_lm_ids"], losses, batch["masked_lm_weights"]


def _soft_words(outputs, targets, temperature):
    """Returns the distances [B, P]; sentence pairs are not learned from a teacher."""
    name = "masked_lm_logits"
    return soft_divergence(outputs[name], targets[name], temperature)


def pretraining_objective(sentence_objective: str | None) -> Objective:
    """Returns the objective of masked words, and of pairs named `sentence_objective` if set."""
    losses = {"masked_lm": LOSSES["masked_lm"]}
    if sentence_objective:
        pairs = dataclasses.replace(LOSSES["next_sentence"], reported_as=sentence_objective)
        losses["next_sentence"] = pairs
    soft = SoftLoss("masked_lm", _soft_words)
    return Objective(
        losses, loss_sums, examples="next_sentence", soft=soft, piece_losses=piece_losses
    )
