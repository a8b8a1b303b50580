"""Writes a model as a TensorFlow SavedModel that takes ids or text.

Loading it does not need this project, only TensorFlow and tensorflow-text, whose operations
tokenize. docs/serving.md lists the inputs and outputs.
"""

import errno
import os

import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.checkpoint_files import is_pattern
from finetuning.inputs import ROW_INPUTS
from finetuning.serving.signatures import Signatures
from finetuning.tasks import TASKS
from model_formats.loaded_model import LoadedModel
from model_formats.runtimes.check import TOLERANCES, largest_differences, sample_inputs
from model_formats.saved_model import pretraining

# The code that loads the folder.
HOW = (
    "import tensorflow_text, tensorflow as tf; "
    "tf.saved_model.load('{folder}').signatures['serving_default']"
)


def export(loaded: LoadedModel, directory: str) -> str:
    """Writes a SavedModel into an empty folder, loads it and compares it with the model.

    Raises:
        InputError: the tokenizer has no graph form, a fine-tuned model has no tokenizer, or
            TensorFlow cannot load from the path.
        OSError: the saved graph's outputs differ from the model's.
    """
    if loaded.tokenizer is None and loaded.task != "pretraining":
        raise InputError(
            "a fine-tuned model must have a tokenizer in its folder to be served. "
            f"Received: {loaded.source} without one"
        )
    path = os.path.abspath(directory)
    if is_pattern(path):
        raise InputError(
            "the path of a SavedModel must have no [ and no \\, because TensorFlow takes such a "
            f"path for a pattern. Received: {path}"
        )
    made = make_signatures(loaded)
    module = tf.Module()
    module.weights = made.served.weights
    module.tokenizer = made.texts and getattr(made.texts.graph, "model", None)
    tf.saved_model.save(module, directory, signatures=made.functions)
    check(directory, made, loaded)
    return HOW if made.texts else HOW.replace("serving_default", "ids")


def make_signatures(loaded: LoadedModel) -> Signatures:
    """Makes the `finetuning.serving.signatures.Signatures` of a `LoadedModel`."""
    task = TASKS.get(loaded.task)
    return task.module("serving").signatures(loaded) if task else pretraining.signatures(loaded)


def check(directory: str, made: Signatures, loaded: LoadedModel) -> None:
    """Loads a SavedModel and compares its outputs for ids with the model's."""
    saved = tf.saved_model.load(directory)
    length = min(4, loaded.config.max_position_embeddings)
    inputs = sample_inputs(loaded, 2, length, tf.int32, seed=0)
    batch = {name: tf.constant(inputs[name]) for name in ROW_INPUTS}
    expected = (made.compute or made.served.compute)(batch)
    # Class names are not compared, as rounding can decide between two equal probabilities.
    for name, difference in largest_differences(saved.signatures["ids"](**batch), expected).items():
        if not difference <= TOLERANCES["float32"]:
            reason = f"cannot write the model (the SavedModel's {name} differ from the model's)"
            raise OSError(errno.EIO, reason, directory)
