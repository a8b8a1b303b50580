"""What the signatures of all tasks share.

Shapes: B rows, T pieces of a row.
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
    """The functions of a SavedModel, with what they need to be saved."""

    functions: dict[str, Any]  # name of the signature -> tf.function
    served: ServedModel  # the `ServedModel` that they run
    texts: "TextRows | None"  # what they encode texts with; None without a tokenizer
    # From the inputs of "ids" to its outputs, by the model itself; None: the `compute` of `served`.
    compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]] | None = None


def longest_row(loaded: "LoadedModel") -> int:
    """The most pieces of a row that a `LoadedModel` takes.

    A fine-tuned model's folder records its rows' length; a pre-trained one the positions that were
    trained.
    """
    most = loaded.config.max_position_embeddings
    recorded = loaded.settings.get("max_seq_length") or loaded.trained_positions
    return min(most, recorded or most)


def inputs(dtype: tf.DType, rank: int, *names: str) -> list[tf.TensorSpec]:
    """The input signature of tensors with these names, all dimensions of unknown length."""
    return [tf.TensorSpec([None] * rank, dtype, name=name) for name in names]


def ids_signature(served: ServedModel) -> Any:
    """The function from `ROW_INPUTS`, int32 [B, T] each, to the outputs of a `ServedModel`."""

    @tf.function(input_signature=inputs(tf.int32, 2, *ROW_INPUTS), autograph=False)
    def ids(input_ids, input_mask, segment_ids):
        values = (input_ids, input_mask, segment_ids)
        return served.run(dict(zip(ROW_INPUTS, values, strict=True)))

    return ids
