"""Builds the graph from ids to a model's outputs, for any number of rows of any length.

Shapes: B rows, T tokens of a row, H hidden, C options.
"""

from typing import Any

import keras
import tensorflow as tf

from finetuning.inputs import ROW_INPUTS
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.tasks import TASKS
from model_formats.loaded_model import LoadedModel

# The names of a file's open sizes, in the order of the inputs' axes.
AXES = ("batch", "sequence")
OPTION_AXES = ("batch", "options", "sequence")


def input_names(loaded: LoadedModel) -> tuple[str, ...]:
    """Returns the names of the graph's inputs."""
    return (*ROW_INPUTS, "p_mask") if isinstance(loaded.model, BeamSpanModel) else ROW_INPUTS


def input_axes(loaded: LoadedModel) -> tuple[str, ...]:
    """Returns the names of the axes, which all inputs share."""
    task = TASKS.get(loaded.task)
    return OPTION_AXES if task and "options" in task.fields else AXES


def make_graph(loaded: LoadedModel, dtype: str) -> Any:
    """Makes the function that is exported.

    Args:
        dtype: the type of the inputs, "int32" or "int64".

    Returns:
        A `tf.function` with a signature. It takes the inputs in the order of `input_names`, each
        [B, T], or [B, C, T] for multiple choice. A fine-tuned model's function returns the dict of
        the model. A pre-trained model's returns "sequence_output" [B, T, H], "pooled_output"
        [B, H] and the `head_outputs`, without outputs whose weights the folder lacks.
    """
    names = input_names(loaded)

    @tf.function(input_signature=_signature(loaded, dtype), autograph=False)
    def run(*arguments):
        inputs = zip(names, arguments, strict=True)
        return _outputs(loaded, {name: tf.cast(value, tf.int32) for name, value in inputs})

    return run


def make_graph_of_weights(loaded: LoadedModel, dtype: str) -> tuple[Any, dict[str, keras.Variable]]:
    """Makes a graph as `make_graph` does, with the weights as further inputs.

    A converter that folds constants keeps many copies of the weights; tf2onnx would need more than
    20 GB for BERT-base.

    Returns:
        The `tf.function`, and a dict from an input's name to the variable that it stands for.
    """
    names = input_names(loaded)
    weights = {variable.path.replace("/", "_"): variable for variable in loaded.model.weights}
    weights = {name: v for name, v in weights.items() if v.trainable}  # excludes dropout's seeds
    specs = [tf.TensorSpec(v.shape, v.dtype, name) for name, v in weights.items()]

    @tf.function(input_signature=[*_signature(loaded, dtype), *specs], autograph=False)
    def run(*arguments):
        ids, values = arguments[: len(names)], arguments[len(names) :]
        inputs = {n: tf.cast(value, tf.int32) for n, value in zip(names, ids, strict=True)}
        mapping = zip(weights.values(), values, strict=True)
        with keras.StatelessScope(state_mapping=mapping):
            return _outputs(loaded, inputs)

    return run, weights


def _signature(loaded, dtype):
    rank = len(input_axes(loaded))
    return [tf.TensorSpec([None] * rank, dtype, name) for name in input_names(loaded)]


def _outputs(loaded, inputs):
    model = loaded.model
    if loaded.task != "pretraining":
        return model(inputs, training=False)
    encoded = model.encoder(inputs, training=False)
    outputs = {"sequence_output": encoded["sequence_output"]}
    if not loaded.lacks_part("pooler"):
        outputs["pooled_output"] = encoded["pooled_output"]
    of_heads = loaded.head_outputs().items()
    return outputs | {name: compute(encoded) for name, compute in of_heads}
