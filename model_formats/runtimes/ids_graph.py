"""The graph from ids to a model's outputs, for any number of rows of any length.

Shapes: B rows, T pieces of a row, H hidden, V vocabulary, C classes or options.
"""

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from finetuning.inputs import ROW_INPUTS
from finetuning.question_answering.beam_head import BeamSpanModel

# What a file calls the sizes that it leaves open, in the order of the inputs' axes.
AXES = ("batch", "sequence")
OPTION_AXES = ("batch", "options", "sequence")

# The size of a file in both formats, whose offsets are signed numbers of 32 bits.
LARGEST_FILE = 2**31 - 1


def input_names(loaded):
    """The names of the graph's inputs."""
    return (*ROW_INPUTS, "p_mask") if isinstance(loaded.model, BeamSpanModel) else ROW_INPUTS


def input_axes(loaded):
    """The names of the axes of every input."""
    return OPTION_AXES if loaded.task == "multiple_choice" else AXES


def make_graph(loaded, dtype):
    """Makes the function that is exported.

    Args:
        loaded: a `LoadedModel`.
        dtype: of the inputs, "int32" or "int64".

    Returns:
        A `tf.function` with a signature: it takes the inputs in the order of `input_names`, each
        [B, T], or [B, C, T] for multiple choice. It returns a dict: of a fine-tuned model what the
        model returns; of a pre-trained model "sequence_output" [B, T, H], "pooled_output" [B, H],
        "masked_lm_logits" [B, T, V] and "next_sentence_logits" [B, 2], without those whose weights
        the folder lacks.

    Raises:
        InputError: the weights do not fit into one file.
    """
    size = sum(4 * int(np.prod(weight.shape)) for weight in loaded.model.weights)
    if size > LARGEST_FILE:
        raise InputError(
            f"the weights must fit into a file of {LARGEST_FILE:,} bytes. Received: {size:,} bytes "
            f"in {loaded.source}"
        )
    names, rank = input_names(loaded), len(input_axes(loaded))
    signature = [tf.TensorSpec([None] * rank, dtype, name) for name in names]
    compute = _pretraining_outputs if loaded.task == "pretraining" else _task_outputs

    @tf.function(input_signature=signature, autograph=False)
    def run(*arguments):
        inputs = zip(names, arguments, strict=True)
        return compute(loaded, {name: tf.cast(value, tf.int32) for name, value in inputs})

    return run


def _task_outputs(loaded, inputs):
    return loaded.model(inputs, training=False)


def _pretraining_outputs(loaded, inputs):
    model = loaded.model
    encoded = model.encoder(inputs, training=False)
    outputs = {"sequence_output": encoded["sequence_output"]}
    if not loaded.lacks("bert/pooler/"):
        outputs["pooled_output"] = encoded["pooled_output"]
        if not loaded.lacks("cls/seq_relationship/"):
            outputs["next_sentence_logits"] = model.next_sentence(encoded["pooled_output"])
    if not loaded.lacks("cls/predictions/"):
        table = model.encoder.embeddings.word_embeddings
        outputs["masked_lm_logits"] = model.masked_lm(encoded["sequence_output"], table)
    return outputs
