"""Defines a model of text vectors on BERT or ALBERT whose cosines are trained to mean similarity.

As in Sentence-BERT (arXiv:1908.10084, section 3), one encoder serves both texts, and its outputs
are pooled. The model has only the encoder's weights.

Shapes: B batch, S texts of an example, T tokens, H hidden.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf.encoder import EncoderModel
from bert_tf.layers import call_block
from bert_tf.objective import Objective
from finetuning.heads import POOLINGS
from finetuning.inputs import ROW_INPUTS
from finetuning.settings import split_numbers
from finetuning.similarity.losses import make_objective, unit

# As in SimCSE (arXiv:2104.08821, table D.1); equals the scale of 20 in sentence-transformers.
TEMPERATURE = 0.05


@keras.saving.register_keras_serializable(package="finetuning")
class SentenceEncoder(EncoderModel):
    """An encoder whose outputs are pooled into one vector per text.

    Args:
        pooling: a key of `finetuning.heads.POOLINGS`; "cls" does not use the pooler.
        normalize: whether vectors have length 1.
        sizes: the sizes that a vector may be cut to; H is always among them.
        training: one of `finetuning.similarity.data.OBJECTIVES`.
        temperature: see `finetuning.similarity.losses.make_objective`.
        freeze_embeddings: whether training leaves the encoder's tables of tokens, positions and
            segments unchanged.

    Example:
        model = SentenceEncoder(BertModel(config))
        vectors = model({"input_ids": ids})["vectors"]  # [B, S, T] -> [B, S, H]
    """

    google_names: dict[str, str] = {}

    def __init__(
        self,
        encoder: keras.Model,
        pooling: str = "mean",
        normalize: bool = True,
        sizes: Sequence[int] = (),
        *,
        training: str = "ranking",
        temperature: float = TEMPERATURE,
        freeze_embeddings: bool = False,
        name: str = "similarity",
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, name, **kwargs)
        self.pooling = pooling
        self.normalize = normalize
        self.sizes = tuple(sorted({self.config.hidden_size, *sizes}, reverse=True))
        self.training = training
        self.temperature = temperature
        self.encoder.embeddings.is_frozen = self.freeze_embeddings = freeze_embeddings
        self.build()

    @property
    def objective(self) -> Objective:
        """The losses of `finetuning.similarity.losses`."""
        return make_objective(self.training, self.temperature, self.sizes, self.normalize)

    def build(self, input_shape: Any = None) -> None:
        self.built = True  # it has no weights of its own

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder on every text.

        Args:
            inputs: the encoder's inputs, a dict of [B, S, T] integers; or [B, T], one text each.
            training, run_block: as for the encoder.

        Returns:
            A dict: "vectors" [B, S, H], or [B, H], in float32 or wider.
        """
        *shape, length = ops.shape(inputs["input_ids"])
        rows = {
            name: ops.reshape(inputs[name], (-1, length))  # [B * S, T]
            for name in ROW_INPUTS
            if name in inputs
        }
        positions = ops.zeros_like(rows["input_ids"][:, :1]) if self.pooling == "cls" else None
        encoded = self.encoder(rows, training=training, positions=positions, run_block=run_block)
        states = ops.cast(encoded["sequence_output"], self.variable_dtype)  # [B * S, T or 1, H]
        mask = rows.get("input_mask")
        mask = ops.ones_like(rows["input_ids"]) if mask is None else mask
        vectors = POOLINGS[self.pooling](states, mask)  # [B * S, H]
        vectors = unit(vectors) if self.normalize else vectors
        return {"vectors": ops.reshape(vectors, (*shape, self.config.hidden_size))}  # [B, S, H]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "pooling": self.pooling,
            "normalize": self.normalize,
            "sizes": self.sizes,
            "training": self.training,
            "temperature": self.temperature,
            "freeze_embeddings": self.freeze_embeddings,
        }


def from_settings(
    encoder: keras.Model, settings: Mapping[str, Any]
) -> tuple[SentenceEncoder, tuple[str, ...]]:
    """Returns the model that a folder's settings describe, with random weights, and no labels."""
    sizes = split_numbers(settings.get("embedding_sizes"))
    return SentenceEncoder(encoder, settings["pooling"], settings["normalize"], sizes), ()
