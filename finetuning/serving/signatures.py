"""Provides what the signatures of all tasks share.

Shapes: B rows, T tokens of a row.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from finetuning.inputs import ROW_INPUTS
from finetuning.serving.served_model import ServedModel

if TYPE_CHECKING:
    from finetuning.serving.text_rows import TextRows
    from model_formats.loaded_model import LoadedModel


class Signatures(NamedTuple):
    """The functions of a SavedModel, and what must be saved with them."""

    functions: dict[str, Any]  # name of the signature -> tf.function
    served: ServedModel  # the `ServedModel` that they run
    texts: "TextRows | None"  # what they encode texts with; None without a tokenizer
    # Computes the outputs of "ids" from its inputs with the model itself; None: `served.compute`.
    compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]] | None = None


def longest_row(loaded: "LoadedModel") -> int:
    """Returns the maximum number of tokens in a row of a `LoadedModel`.

    A fine-tuned model's folder records the length of its rows; a pre-trained model's folder records
    the number of trained positions.
    """
    most = loaded.config.max_position_embeddings
    recorded = loaded.settings.get("max_seq_length") or loaded.trained_positions
    return min(most, recorded or most)


def inputs(dtype: tf.DType, rank: int, *names: str) -> list[tf.TensorSpec]:
    """Returns the input signature of named tensors whose dimensions all have unknown length."""
    return [tf.TensorSpec([None] * rank, dtype, name=name) for name in names]


def ids_signature(served: ServedModel) -> Any:
    """Makes the function from `ROW_INPUTS`, int32 [B, T] each, to a `ServedModel`'s outputs."""

    @tf.function(input_signature=inputs(tf.int32, 2, *ROW_INPUTS), autograph=False)
    def ids(input_ids, input_mask, segment_ids):
        values = (input_ids, input_mask, segment_ids)
        return served.run(dict(zip(ROW_INPUTS, values, strict=True)))

    return ids
