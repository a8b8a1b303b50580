"""Writes a model as a TensorFlow SavedModel that takes ids or text.

It needs nothing of this project to be loaded: TensorFlow, and tensorflow-text, whose operations
tokenize. docs/serving.md lists the inputs and outputs.
"""

import errno
import os
import warnings

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.checkpoint_files import is_pattern, link_to
from finetuning.inputs import ROW_INPUTS
from finetuning.serving.signatures import Signatures
from finetuning.tasks import TASKS
from model_formats.loaded_model import LoadedModel
from model_formats.saved_model import pretraining

# How far outputs of the saved graph may be from the model's: a sum of a few hundred products in
# another order.
TOLERANCE = 1e-4


# How the folder is loaded.
HOW = (
    "import tensorflow_text, tensorflow as tf; "
    "tf.saved_model.load('{folder}').signatures['serving_default']"
)


def export(loaded: LoadedModel, directory: str) -> str:
    """Writes a SavedModel into an empty folder, loads it and compares it with the model.

    Raises:
        InputError: the tokenizer has no graph form, or a fine-tuned model has none.
        OSError: the saved graph's outputs are not the model's.
    """
    if loaded.tokenizer is None and loaded.task != "pretraining":
        raise InputError(
            "a fine-tuned model must have a tokenizer in its folder to be served. "
            f"Received: {loaded.source} without"
        )
    made = make_signatures(loaded)
    module = tf.Module()
    module.weights = made.served.weights
    module.tokenizer = made.texts and getattr(made.texts.graph, "model", None)
    tf.saved_model.save(module, directory, signatures=made.functions)
    check(directory, made, loaded.config.max_position_embeddings)
    if is_pattern(os.path.abspath(directory)):
        warnings.warn(
            "a SavedModel must be moved to a path without [ and \\ before it is loaded: there "
            "TensorFlow takes the path for a pattern",
            stacklevel=2,
        )
    return HOW if made.texts else HOW.replace("serving_default", "ids")


def make_signatures(loaded: LoadedModel) -> Signatures:
    """The `finetuning.serving.signatures.Signatures` of a `LoadedModel`."""
    task = TASKS.get(loaded.task)
    return task.module("serving").signatures(loaded) if task else pretraining.signatures(loaded)


def check(directory: str, made: Signatures, positions: int) -> None:
    """Loads a SavedModel, and compares its outputs for ids with the model's own.

    `positions` is how many the model has: rows that are compared have no more.
    """
    directory = os.path.abspath(directory)
    loaded = tf.saved_model.load(link_to(directory) if is_pattern(directory) else directory)
    ids = np.array([[1, 2, 3, 4], [4, 3, 2, 1]], np.int32)  # [2, 4], in any vocabulary
    batch = {
        "input_ids": ids,
        "input_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.int32),
        "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 0]], np.int32),
    }
    batch = {name: rows[:, :positions] for name, rows in batch.items()}  # [2, T]
    if len(made.functions["ids"].input_signature[0].shape) == 3:
        batch = {name: rows[np.newaxis] for name, rows in batch.items()}  # [1, 2, T]: two options
    batch = {name: tf.constant(batch[name]) for name in ROW_INPUTS}
    found, expected = (
        loaded.signatures["ids"](**batch),
        (made.compute or made.served.compute)(batch),
    )
    for name, values in expected.items():
        # Not the names of classes: of two equal probabilities either may be the larger one.
        if values.dtype.is_floating and not np.allclose(found[name], values, atol=TOLERANCE):
            reason = f"cannot write the model (the SavedModel's {name} differ from the model's)"
            raise OSError(errno.EIO, reason, directory)
