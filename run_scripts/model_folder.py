"""Fills in the flags of a model from what its folder holds."""

import dataclasses
import os

from bert_common.errors import InputError
from model_formats.folder_tokenizer import find_tokenizer
from model_formats.model_folder import (
    CONFIG_NAMES,
    REFERENCE_MODEL,
    find_checkpoint,
    find_config,
    find_folder,
)
from model_formats.weights import find_weights
from run_scripts.flags.tokenizer import TokenizerFlags, source_of

# The flags that name a model, each alone or with others.
MODEL_FLAGS = ("model_dir", "init_checkpoint", "bert_config_file", "albert_config_file")


def fill_in_reference_model(values):
    """Makes the model that comes with this project --model_dir where no flag names a model.

    Raises:
        InputError: a tokenizer is named without a model.
    """
    if any(getattr(values, name, None) for name in MODEL_FLAGS):
        return values
    if source := source_of(values):
        raise InputError(f"a tokenizer must be given with its model. Received: {source} alone")
    print(f"note: the model is {REFERENCE_MODEL}; --model_dir chooses another")
    return dataclasses.replace(values, model_dir=REFERENCE_MODEL)


def fill_in_model(values):
    """Fills in what --model_dir holds where no other flag names it.

    An --init_checkpoint that is a folder becomes the checkpoint that stands for it.

    Args:
        values: a program's flags, with those of `ModelFlags` and perhaps of `TokenizerFlags`.

    Raises:
        InputError: the folder holds no model, or several.
    """
    if values.init_checkpoint and os.path.isdir(values.init_checkpoint):
        values = dataclasses.replace(values, init_checkpoint=find_weights(values.init_checkpoint))
    if not values.model_dir:
        return values
    folder = find_folder(values.model_dir)
    filled = config_flag(values, folder)
    if not values.init_checkpoint:
        filled["init_checkpoint"] = find_checkpoint(folder)
    if isinstance(values, TokenizerFlags):
        values = fill_in_tokenizer(values)
    return dataclasses.replace(values, **filled)


def config_flag(values, folder):
    """The flag and path of a folder's configuration, as a dict; empty where a flag names one."""
    if any(getattr(values, f"{model_type}_config_file") for model_type in CONFIG_NAMES):
        return {}
    model_type, path = find_config(folder)
    return {f"{model_type}_config_file": path}


def fill_in_tokenizer(values):
    """Fills in the tokenizer that --model_dir holds where no flag names one.

    Raises:
        InputError: there are several, or --do_lower_case contradicts the folder's name.
    """
    if source_of(values) or not values.model_dir:
        return values
    return dataclasses.replace(values, **find_tokenizer(values.model_dir, values.do_lower_case))
