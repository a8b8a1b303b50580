"""Fills in flags from the settings that a fine-tuned model's folder has saved."""

import dataclasses
import os
import re

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import latest_checkpoint
from finetuning.datasets import DATASETS
from model_formats.huggingface.config import read_config
from model_formats.huggingface.task_settings import settings_of
from model_formats.model_folder import (
    SETTINGS_FILE,
    find_folder,
    folder_of,
    huggingface_config,
    read_settings_file,
)
from run_scripts.flags.declaration import PerModel, value_type
from run_scripts.flags.tokenizer import source_of
from run_scripts.model_folder import config_flag, fill_in_model


def fill_in_saved_model(given, task_flags, changeable, alike):
    """Fills in what --model_dir holds, then what --output_dir has saved, where no flag was given.

    Args:
        given: `FinetuneFlags` of a program, as parsed.
        task_flags, changeable, alike: as in `Program`.

    Returns:
        `FinetuneFlags`.

    Raises:
        InputError: a flag contradicts what the folder's model was trained for, or another
            program trained it.
    """
    values = _fill_in_model_dir(given)
    folder, saved = read_settings(values)
    if saved is None:
        return _fill_in_labels(values)
    path = os.path.join(folder, SETTINGS_FILE)
    missing = [name for name in task_flags if name not in saved]
    if missing:
        raise InputError(
            "the model's folder must be one that this program trained. Received: "
            f"{path} without {missing[0]}"
        )
    _check_types(values, task_flags, saved, path)
    filled = {}
    for name in task_flags:
        value = getattr(values, name)
        if value is None or isinstance(value, PerModel):
            filled[name] = saved[name]
        elif {value, saved[name]} <= {*alike.get(name, ())}:
            continue
        elif value != saved[name] and name not in changeable:
            raise InputError(
                f"--{name} must be what the model in {folder} was trained with: {saved[name]}. "
                f"Received: {value}"
            )
    filled |= config_flag(values, folder)
    if not source_of(values):
        filled["tokenizer_dir"] = folder
    return dataclasses.replace(values, **filled)


def _fill_in_model_dir(given):
    """Fills in what --model_dir holds where no other flag names it.

    Without --do_train, a fine-tuned model in --output_dir takes precedence over the pre-trained
    weights of --model_dir, so the training command can be rerun without --do_train.
    """
    filled = fill_in_model(given)
    if given.do_train or not given.model_dir or not latest_checkpoint(given.output_dir):
        return filled
    if os.path.exists(os.path.join(find_folder(given.model_dir), SETTINGS_FILE)):
        return filled
    return dataclasses.replace(filled, init_checkpoint=given.init_checkpoint)


def _fill_in_labels(values):
    """Fills in the classes, in their order, of a fine-tuned model that transformers wrote.

    Its config.json has nothing else of the task. Names such as "LABEL_0" say nothing.

    Raises:
        InputError: the task that the flags name has the same classes in another order.
    """
    if values.do_train or not values.init_checkpoint or getattr(values, "labels", "") is not None:
        return values
    path = huggingface_config(folder_of(values.init_checkpoint))
    if path is None:
        return values
    labels = settings_of(read_json(read_bytes(path), path), read_config(path).config, path)
    labels = labels.get("labels")
    if not labels or re.fullmatch(r"LABEL_\d+(,LABEL_\d+)*", labels):
        return values
    names, dataset = tuple(labels.split(",")), DATASETS.get(values.task_name)
    if dataset is None:
        return dataclasses.replace(values, labels=labels)
    if names != dataset.labels and set(names) == set(dataset.labels):
        raise InputError(
            f"a model for --task_name={values.task_name} must have the classes "
            f"{', '.join(dataset.labels)} in this order. Received: {path} with {', '.join(names)}"
        )
    return values


def _check_types(values, names, saved, path):
    """Rejects saved values whose type is not their flag's: the file was edited."""
    for field in dataclasses.fields(values):
        value = saved.get(field.name)
        if field.name not in names or value is None:
            continue
        kind, choices = value_type(field), field.metadata["choices"]
        if type(value) not in ((int, float) if kind is float else (kind,)) or (
            choices and value not in choices
        ):
            raise InputError(
                f"{path} must not be edited: {field.name} must be "
                f"{' or '.join(choices or [kind.__name__])}. Received: {value!r}"
            )


def read_settings(values):
    """The folder of the fine-tuned model and its saved settings; None and None if there is none.

    Without --do_train that is the folder of --init_checkpoint, if it is given.
    """
    folders = [values.output_dir]
    if values.init_checkpoint and not values.do_train:
        prefix = values.init_checkpoint
        inside = os.path.join(prefix, "any")
        folders.insert(0, folder_of(inside if os.path.isdir(prefix) else prefix))
    for folder in folders:
        path = os.path.join(folder, SETTINGS_FILE)
        if os.path.exists(path):
            return folder, read_settings_file(path)
    return None, None
