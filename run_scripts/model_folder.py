"""Fills in the flags of a model from what its folder holds."""

import dataclasses
import os

from model_formats.folder_tokenizer import find_tokenizer
from model_formats.model_folder import CONFIG_NAMES, find_checkpoint, find_config, find_folder
from model_formats.weights import find_weights
from run_scripts.flags.tokenizer import TokenizerFlags, source_of


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
