"""Exports a .keras file, which Keras can load if this project is installed."""

import errno
import os
import warnings

import keras
import numpy as np

from bert_tf.checkpoint import google_variables
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import write_description

FILE = "model.keras"


def export(loaded: LoadedModel, directory: str) -> str:
    """Writes the model as one file, next to its configuration, tokenizer and task.

    For a pre-trained model without a masked-word head, only the encoder is written.

    Raises:
        OSError: the weights on disk differ from those in memory.
    """
    model = loaded.model
    if loaded.task == "pretraining" and loaded.missing and not loaded.fills_masks:
        model = model.encoder
    kept = [name for name in loaded.missing if name in google_variables(model)]
    if kept:
        warnings.warn(
            f"{loaded.source} has no {', '.join(kept)}: in the file they have random values",
            stacklevel=2,
        )
    path = os.path.join(directory, FILE)
    model.save(path)
    found, expected = google_variables(keras.saving.load_model(path)), google_variables(model)
    for name, variable in expected.items():
        if not np.array_equal(found[name], variable, equal_nan=True):
            reason = f"cannot write the model ({name} on disk differs from its value in memory)"
            raise OSError(errno.EIO, reason, path)
    write_description(loaded, directory)
    # Importing these modules registers the file's classes with Keras.
    classes = {type(part).__module__ for part in (model, getattr(model, "encoder", model))}
    imports = ", ".join(["keras", *sorted(classes)])
    return f"import {imports}; keras.saving.load_model('{{folder}}/{FILE}')"
