"""Exports a TensorFlow 1 checkpoint for the code of google-research/bert or albert."""

import dataclasses
import os
import warnings

import numpy as np

from bert_common.errors import InputError
from bert_tf.checkpoint import google_variables, write_arrays
from bert_tf.config import LAYER_NORM_EPSILON
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import write_description
from tokenization.loading import KINDS

# The vocabulary flag for each kind of tokenizer.
VOCABULARY_FLAGS = {"full": "vocab_file", "sentencepiece": "spm_model_file"}


def check(loaded: LoadedModel) -> None:
    """Raises an `InputError` for networks, and warns of tokenizers, that Google's code lacks."""
    config, tokenizer = loaded.config, loaded.tokenizer
    encoder, act = loaded.encoder, (config.hidden_act or "").lower()
    if "gelu" in act and act not in encoder.google_gelu:
        raise InputError(
            "hidden_act must be one that google-research's code has, whose gelu is "
            f"{' or '.join(encoder.google_gelu)} here. Received: {config.hidden_act}"
        )
    if config.layer_norm_eps != LAYER_NORM_EPSILON:
        raise InputError(
            f"layer_norm_eps must be {LAYER_NORM_EPSILON}, which google-research's code has fixed. "
            f"Received: {config.layer_norm_eps}"
        )
    if tokenizer is not None and tokenizer.kind not in encoder.tokenizers:
        warnings.warn(
            f"google-research/{loaded.model_type} has no tokenizer of the kind {tokenizer.kind}: "
            "its programs may cut text into other tokens; give them ids that this project has made",
            stacklevel=2,
        )


def export(loaded: LoadedModel, directory: str) -> str:
    """Writes the model under Google's names, in the layout of a released folder.

    This project's programs can also read the folder as --model_dir.

    Raises:
        InputError: Google's code does not support the model's activation or epsilon.
        OSError: the checkpoint on disk differs from the weights in memory.
    """
    check(loaded)
    arrays = {
        name: np.asarray(variable.value)
        for name, variable in google_variables(loaded.model).items()
        if name not in loaded.missing
    }
    encoder = loaded.encoder
    checkpoint = encoder.checkpoint
    write_arrays(os.path.join(directory, checkpoint), arrays)
    config = loaded.config
    if (config.hidden_act or "").lower() == "gelu_tanh":
        config = dataclasses.replace(config, hidden_act="gelu")  # Google's name for it
    write_description(dataclasses.replace(loaded, config=config), directory)
    if not encoder.config_flag:
        return f"google-research/{loaded.model_type}{encoder.google_use}"
    flags = {
        encoder.config_flag: f"{{folder}}/{encoder.config_file}",
        "init_checkpoint": f"{{folder}}/{checkpoint}",
    }
    if (tokenizer := loaded.tokenizer) and tokenizer.kind in VOCABULARY_FLAGS:
        flags[VOCABULARY_FLAGS[tokenizer.kind]] = f"{{folder}}/{KINDS[tokenizer.kind][1]}"
        flags["do_lower_case"] = str(bool(tokenizer.do_lower_case))
    return f"google-research/{loaded.model_type} with " + " ".join(
        f"--{name}={value}" for name, value in flags.items()
    )
