"""What the folder of a fine-tuned model remembers of its flags, and how a later run uses it."""

import dataclasses
import os

from bert_common.errors import InputError
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import latest_checkpoint
from run_scripts.flags.declaration import PerModel, value_type
from run_scripts.model_folder import (
    CONFIG_NAMES,
    SETTINGS_FILE,
    fill_in_model,
    find_config,
    find_folder,
    folder_of,
)
from tokenization.vocabulary import read_bytes


def fill_in_saved_model(given, task_flags, changeable):
    """Fills in what --model_dir holds, then what --output_dir remembers, where no flag was given.

    Args:
        given: `FinetuneFlags` of a program, as parsed.
        task_flags: the flags that a model's folder remembers.
        changeable: those of them that may differ from what the model was trained with.

    Returns:
        `FinetuneFlags`.

    Raises:
        InputError: a flag contradicts what the folder's model was trained for, or another
            program trained it.
    """
    values = _fill_in_model_dir(given)
    folder, saved = read_settings(values)
    if saved is None:
        return values
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
        elif value != saved[name] and name not in changeable:
            raise InputError(
                f"--{name} must be what the model in {folder} was trained with: {saved[name]}. "
                f"Received: {value}"
            )
    if not any(getattr(values, f"{model_type}_config_file") for model_type in CONFIG_NAMES):
        model_type, config = find_config(folder)
        filled[f"{model_type}_config_file"] = config
    if not (values.tokenizer_dir or values.vocab_file or values.spm_model_file):
        filled["tokenizer_dir"] = folder
    return dataclasses.replace(values, **filled)


def _fill_in_model_dir(given):
    """Fills in what --model_dir holds where no other flag names it.

    Without --do_train that is the fine-tuned model, unless the folder is a pre-trained model's and
    --output_dir holds a fine-tuned one: the command of a training works without its --do_train.
    """
    filled = fill_in_model(given)
    if given.do_train or not given.model_dir or not latest_checkpoint(given.output_dir):
        return filled
    if os.path.exists(os.path.join(find_folder(given.model_dir), SETTINGS_FILE)):
        return filled
    return dataclasses.replace(filled, init_checkpoint=given.init_checkpoint)


def _check_types(values, names, saved, path):
    """Refuses values of another type than their flags have: somebody has edited the file.

    Args:
        values: `FinetuneFlags` of a program.
        names: the flags that a model's folder remembers.
        saved: their values.
        path: the file.
    """
    for field in dataclasses.fields(values):
        value = saved.get(field.name)
        if field.name not in names or value is None:
            continue
        kind, choices = value_type(field), field.metadata["choices"]
        if type(value) not in ((int, float) if kind is float else (kind,)) or (
            choices and value not in choices
        ):
            raise InputError(
                f"{path} must be as it was written: {field.name} must be "
                f"{' or '.join(choices or [kind.__name__])}. Received: {value!r}"
            )


def read_settings(values):
    """The folder of the fine-tuned model and what it remembers; None and None if there is none.

    Without --do_train that is the folder of the weights, if --init_checkpoint names any.
    """
    folders = [values.output_dir]
    if values.init_checkpoint and not values.do_train:
        prefix = values.init_checkpoint
        inside = os.path.join(prefix, "any")
        folders.insert(0, folder_of(inside if os.path.isdir(prefix) else prefix))
    for folder in folders:
        path = os.path.join(folder, SETTINGS_FILE)
        if os.path.exists(path):
            saved = read_json(read_bytes(path), path)
            if not isinstance(saved, dict):
                raise InputError(f"{path} must hold an object. Received: {type(saved).__name__}")
            return folder, saved
    return None, None
