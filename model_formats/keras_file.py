"""Exports a .keras file, which Keras can load if this project is installed."""

import os
import warnings

from bert_tf.checkpoint import google_variables
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import write_description

FILE = "model.keras"


def export(loaded: LoadedModel, directory: str) -> str:
    """Writes the model as one file, next to its configuration, tokenizer and task.

    For a pre-trained model without a masked-word head, only the encoder is written.
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
    model.save(os.path.join(directory, FILE))
    write_description(loaded, directory)
    # Importing these modules registers the file's classes with Keras.
    classes = {type(part).__module__ for part in (model, getattr(model, "encoder", model))}
    imports = ", ".join(["keras", *sorted(classes)])
    return f"import {imports}; keras.saving.load_model('{{folder}}/{FILE}')"
