"""What the signatures of all tasks share.

Shapes: B rows, T pieces of a row.
"""

from typing import NamedTuple

import tensorflow as tf

from finetuning.inputs import ROW_INPUTS


class Signatures(NamedTuple):
    """The functions of a SavedModel, with what they need to be saved."""

    functions: dict  # name of the signature -> tf.function
    served: object  # the `ServedModel` that they run
    texts: object  # the `TextRows` that they encode texts with
    # From the inputs of "ids" to its outputs, by the model itself; None: the `compute` of `served`.
    compute: object = None


def longest_row(loaded):
    """The most pieces of a row that a `LoadedModel` takes.

    A fine-tuned model's folder records its rows' length; a pre-trained one the positions that were
    trained.
    """
    most = loaded.config.max_position_embeddings
    recorded = loaded.settings.get("max_seq_length") or loaded.trained_positions
    return min(most, recorded or most)


def inputs(dtype, rank, *names):
    """The input signature of tensors with these names, all dimensions of unknown length."""
    return [tf.TensorSpec([None] * rank, dtype, name=name) for name in names]


def ids_signature(served):
    """The function from `ROW_INPUTS`, int32 [B, T] each, to the outputs of a `ServedModel`."""

    @tf.function(input_signature=inputs(tf.int32, 2, *ROW_INPUTS), autograph=False)
    def ids(input_ids, input_mask, segment_ids):
        values = (input_ids, input_mask, segment_ids)
        return served.run(dict(zip(ROW_INPUTS, values, strict=True)))

    return ids
