"""Defines ELECTRA's objective, replaced-token detection (arXiv:2003.10555), and its two networks.

A generator predicts the masked tokens, and each mask is replaced by a token sampled from the
prediction. The discriminator classifies every token as original or replaced. A sampled token that
equals the original counts as original.

Shapes: B batch, T tokens, H hidden, P predictions, V vocabulary.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.dropout import random_bits
from bert_tf.encoder import EncoderModel, HeadOutput
from bert_tf.layers import Shape, activation_function, call_block, dense
from bert_tf.objective import Loss, Objective, Share, weighted_sums
from bert_tf.pretraining import LOSSES as WORDS
from bert_tf.pretraining import MaskedLmHead, loss_sums, most_likely
from electra_tf.model import ElectraModel, Generator

# Maps the heads' variables (paths below the model's own name) to Google's (google-research/electra,
# run_pretraining.py); {w} is kernel or bias, and gamma or beta for a layer norm.
GOOGLE_NAMES = {
    "masked_lm/transform/{w}": "generator_predictions/dense/{w}",
    "masked_lm/layer_norm/{w}": "generator_predictions/LayerNorm/{w}",
    "masked_lm/output_bias": "generator_predictions/output_bias",
    "discriminator/dense/{w}": "discriminator_predictions/dense/{w}",
    "discriminator/logit/{w}": "discriminator_predictions/dense_1/{w}",
}

# The lambda of arXiv:2003.10555, section 3.2, which was chosen from 1, 10, 20, 50, 100.
DISCRIMINATOR_WEIGHT = 50.0

# As in google-research/electra, run_pretraining.py, for both losses.
EPSILON = 1e-6

LOSSES = {
    "discriminator": Loss(
        labels=("masked_lm_ids", "masked_lm_positions"),
        weights="input_mask",
        sums=(
            "loss",
            "correct",
            "weight",
            "original_correct",
            "original_weight",
            "replaced_correct",
            "replaced_weight",
        ),
        epsilon=EPSILON,
        factor=DISCRIMINATOR_WEIGHT,
        curves={
            "loss": "mean over all tokens",
            "accuracy": "share of all tokens judged right, original or replaced",
        },
    ),
    "masked_lm": dataclasses.replace(
        WORDS["masked_lm"],
        epsilon=EPSILON,
        curves={
            "loss": "of the generator, mean over the masked tokens",
            "accuracy": "share of the masked tokens that the generator predicted correctly",
        },
    ),
}
SHARES = {
    "originals_accuracy": Share(
        "discriminator_original_correct",
        "discriminator_original_weight",
        "share of the originals judged right",
    ),
    "replacements_accuracy": Share(
        "discriminator_replaced_correct",
        "discriminator_replaced_weight",
        "share of the replacements that were found",
    ),
    "replaced_share": Share(
        "discriminator_replaced_weight", "discriminator_weight", "replacements among all tokens"
    ),
}


class DiscriminatorHead(keras.layers.Layer):
    """Computes a logit for every token, which is above 0 if the token seems replaced."""

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = config.hidden_size
        policy, activation = self.dtype_policy, activation_function(config.hidden_act)
        self.dense = dense(config.hidden_size, config, "dense", activation, policy)
        self.logit = dense(1, config, "logit", dtype=policy)

    def build(self, input_shape: Shape | None = None) -> None:
        for layer in (self.dense, self.logit):
            layer.build((None, None, self.hidden_size))

    def call(self, sequence_output: Any) -> Any:
        """Computes the logits: [B, T, H] -> [B, T]."""
        return self.logit(self.dense(sequence_output))[..., 0]


@keras.saving.register_keras_serializable(package="electra_tf")
class ReplacedTokensModel(EncoderModel):
    """A discriminator (the `encoder`) with the generator that creates its inputs.

    Args:
        encoder: an `ElectraModel`; its configuration has the generator's width.
    """

    google_names = GOOGLE_NAMES

    def __init__(self, encoder: ElectraModel, name: str = "replaced_tokens", **kwargs: Any) -> None:
        super().__init__(encoder, name, **kwargs)
        policy = self.dtype_policy
        self.generator = Generator(encoder)
        self.masked_lm = MaskedLmHead(self.generator.config, name="masked_lm", dtype=policy)
        self.discriminator = DiscriminatorHead(self.config, name="discriminator", dtype=policy)
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    @property
    def objective(self) -> Objective:
        """Replaced tokens for the discriminator and masked tokens for the generator."""
        return OBJECTIVE

    @property
    def networks(self) -> tuple[keras.Model, ...]:
        return self.encoder, self.generator

    def build(self, input_shape: Shape | None = None) -> None:
        self.masked_lm.build()
        self.discriminator.build()

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the discriminator and, if masked positions are given, the generator before it.

        Args:
            inputs: the encoder's inputs. The generator runs if they have masked_lm_positions
                [B, P], integers below T. With masked_lm_ids [B, P] and masked_lm_weights [B, P]
                too, sampled tokens replace the masks; otherwise input_ids are left unchanged.
            training: enables dropout. Otherwise equal rows are always filled with the same tokens.
            run_block: see `bert_tf.layers`.

        Returns:
            A dict of "discriminator_logits" [B, T]; from the generator "masked_lm_logits"
            [B, P, V]; "corrupted_ids" [B, T], which the discriminator reads, and "replaced"
            [B, T], 1 where they differ from the original.
        """
        outputs = {}
        if "masked_lm_positions" in inputs:
            options = {"positions": inputs["masked_lm_positions"], "run_block": run_block}
            filled = self.generator(inputs, training=training, **options)
            table = self.encoder.embeddings.word_embeddings
            outputs["masked_lm_logits"] = self.masked_lm(filled["sequence_output"], table)
        if "masked_lm_ids" in inputs:
            seed = self.seed_generator.next() if training else (0, 0)
            drawn = sample(outputs["masked_lm_logits"], row_numbers(inputs), seed)
            outputs |= corrupt(inputs, drawn)
            inputs = {**inputs, "input_ids": outputs["corrupted_ids"]}
        encoded = self.encoder(inputs, training=training, run_block=run_block)
        outputs["discriminator_logits"] = self.discriminator(encoded["sequence_output"])
        return outputs

    def head_outputs(self) -> dict[str, HeadOutput]:
        """Returns the discriminator's logits as an output."""
        output = HeadOutput(("discriminator",), lambda x: self.discriminator(x["sequence_output"]))
        return {"discriminator_logits": output}


def row_numbers(inputs: Mapping[str, Any]) -> Any:
    """Hashes the contents of each prediction's row, and its position, to a number [B, P] uint32.

    The tokens sampled for an example thus do not depend on the other examples in its batch.
    """
    ids, positions = inputs["input_ids"], inputs["masked_lm_positions"]
    of_ids = random_bits(ids, 1, (0, 1))[..., 0]  # [B, T]
    of_places = random_bits(ops.arange(ids.shape[1], dtype="int32"), 1, (0, 2))[:, 0]  # [T]
    # The factors are made odd because an even one would lose bits of the id.
    of_rows = ops.sum(of_ids * ops.bitwise_or(of_places, _word(1)), axis=1, keepdims=True)  # [B, 1]
    return ops.cast(of_rows, "uint32") + ops.cast(positions, "uint32")


def sample(logits: Any, rows: Any, seed: Any) -> Any:
    """Draws a class from the softmax of logits [..., V], by the maximum after adding Gumbel noise.

    Args:
        rows: [...] integers, a number for each draw.
        seed: two integers.

    Returns:
        [...] int32, which depends only on the arguments.
    """
    dtype = keras.backend.result_type(logits.dtype, "float32")
    logits = ops.stop_gradient(ops.cast(logits, dtype))
    bits = ops.right_shift(random_bits(rows, logits.shape[-1], seed), _word(1))  # below 2^31
    uniform = (ops.cast(ops.cast(bits, "int32"), dtype) + 0.5) * 2.0**-31  # [..., V]
    # The noise is -log(-log(u)) with u = 1 - uniform. Where it is large, `uniform` is near 0, where
    # float32 has a higher resolution than near 1.
    return most_likely(logits - ops.log(-ops.log1p(-uniform)))


def _word(number):
    return ops.convert_to_tensor(number, "uint32")


def corrupt(inputs: Mapping[str, Any], drawn: Any) -> dict[str, Any]:
    """Replaces the masks by the drawn tokens [B, P].

    Args:
        inputs: a dict with input_ids [B, T] and with masked_lm_positions, masked_lm_ids and
            masked_lm_weights, [B, P] each; the weights are 0 where there is no prediction.

    Returns:
        "corrupted_ids" [B, T] and "replaced" [B, T], 1 where they differ from the original.
    """
    ids, positions = inputs["input_ids"], inputs["masked_lm_positions"]
    is_used = ops.greater(inputs["masked_lm_weights"], 0)  # [B, P]
    places = ops.arange(ids.shape[1], dtype=positions.dtype)  # [T]
    here = ops.equal(positions[..., None], places) & is_used[..., None]  # [B, P, T]
    is_masked = ops.any(here, axis=1)  # [B, T]

    def put(pieces):
        # If a place has two tokens, the maximum is deterministic, while a scatter would not be.
        found = ops.max(ops.where(here, ops.cast(pieces, ids.dtype)[..., None], 0), axis=1)
        return ops.where(is_masked, found, ids)  # [B, T]

    originals, corrupted = put(inputs["masked_lm_ids"]), put(drawn)
    replaced = ops.cast(ops.not_equal(corrupted, originals), "int32")
    return {"corrupted_ids": corrupted, "replaced": replaced}


def replaced_tokens_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the sums that `LOSSES` declares: "masked_lm_loss", "discriminator_loss" etc.

    The batch has input_mask [B, T], masked_lm_ids and masked_lm_weights [B, P].
    """
    words = {name: batch[name] for name in ("masked_lm_ids", "masked_lm_weights")}
    logits = outputs["discriminator_logits"]
    logits = ops.cast(logits, keras.backend.result_type(logits.dtype, "float32"))  # [B, T]
    is_replaced = ops.cast(outputs["replaced"], logits.dtype)
    weights = ops.cast(batch["input_mask"], logits.dtype)
    losses = ops.binary_crossentropy(is_replaced, logits, from_logits=True)  # [B, T]
    is_right = ops.equal(ops.cast(ops.greater(logits, 0), logits.dtype), is_replaced)
    right = ops.cast(is_right, logits.dtype) * weights
    return {
        **loss_sums(outputs, words),
        **weighted_sums("discriminator", losses, weights, is_right),
        "discriminator_original_correct": ops.sum(right * (1 - is_replaced)),
        "discriminator_original_weight": ops.sum(weights * (1 - is_replaced)),
        "discriminator_replaced_correct": ops.sum(right * is_replaced),
        "discriminator_replaced_weight": ops.sum(weights * is_replaced),
    }


# The first loss chooses the best checkpoint. `piece_losses` is None because the discriminator's
# loss is over all tokens, which are equally important.
OBJECTIVE = Objective(LOSSES, replaced_tokens_sums, shares=SHARES)
