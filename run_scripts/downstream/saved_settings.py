"""Finds the model that fine-tuning flags name, and the task's flags that its folder saved."""

import dataclasses
import re
from typing import Any

from bert_common.errors import InputError
from finetuning.datasets import DATASETS
from finetuning.settings import ALWAYS, NEVER, UNTRAINED, split_names
from finetuning.tasks import Task
from model_formats.folder_weights import trained_checkpoint
from model_formats.model_folder import ModelFolder
from model_formats.task_records import check_settings, check_values
from model_formats.transformers_files.sentence_modules import read_sentence_modules
from model_formats.transformers_files.task_settings import (
    check_head,
    exported_settings,
    task_of,
    type_of,
)
from run_scripts.flags.declaration import PerModel
from run_scripts.flags.finetune import FinetuneFlags, output_dirs
from run_scripts.given_model import GivenModel

# The names that transformers gives to classes without any.
UNNAMED = r"LABEL_\d+(,LABEL_\d+)*"


def find_model(given: FinetuneFlags) -> GivenModel:
    """Returns the `GivenModel` of parsed `FinetuneFlags`, with the fine-tuned folder if any.

    With --do_train, that folder is --output_dir or a seed's folder in it, where the training
    resumes; without, it is the checkpoint's folder or else --output_dir.
    """
    model = GivenModel.of(given)
    if model.folder and not (given.do_train or model.folder.is_fine_tuned):
        # So that the training command can be rerun without --do_train.
        use_folder = not trained_checkpoint(given.output_dir)
        model = dataclasses.replace(model, folder_has_weights=use_folder)
    folders = [*map(ModelFolder, output_dirs(given) if given.do_train else [given.output_dir])]
    if not given.do_train and model.checkpoint:
        folders.insert(0, model.checkpoint_folder)
    fine_tuned = next((folder for folder in folders if folder.is_fine_tuned), None)
    return dataclasses.replace(model, fine_tuned=fine_tuned)


def saved_task_flags(
    given: FinetuneFlags, model: GivenModel, task: Task, **known: Any
) -> dict[str, Any]:
    """Returns the fine-tuned folder's values of the flags that are neither given nor `known`.

    Raises an `InputError` if a flag contradicts what the folder's model was trained for, or if a
    different program trained it.
    """
    folder = model.fine_tuned
    if folder is None:
        return _settings_of_transformers(given, model, task) | _inherited(given, model, task)
    (path, _), saved = folder.record, folder.settings
    missing = [name for name in task.settings if name not in saved]
    if missing or folder.task != task.name:
        lacks = f"without {missing[0]}" if missing else f"of the task {folder.task}"
        raise InputError(
            f"the model's folder must be one that this program trained. Received: {path} {lacks}"
        )
    check_settings(task, saved, path)
    converts = {field.name: field.metadata["convert"] for field in dataclasses.fields(given)}
    filled = {}
    for name, setting in task.settings.items():
        value, recorded = known.get(name) or getattr(given, name), saved[name]
        if value is None or isinstance(value, PerModel):
            filled[name] = recorded
            continue
        if recorded is None:  # the flag was not given
            recorded = setting.default
        # Earlier versions saved some flags as they were given.
        convert = converts[name]
        trained = convert(recorded) if recorded and convert else recorded
        if value != trained and not _may_differ(setting, value, trained, given.do_train):
            raise _other_value(name, folder, recorded, value)
    return filled


def _inherited(given, model, task):
    """Returns the settings that a run inherits from its starting model if no flag gives them.

    Raises an `InputError` if a list to evaluate differs from a transformers folder's, or if vectors
    of a sentence-transformers folder cannot be computed and no flag gives their pooling.
    """
    runs = (ALWAYS,) if given.do_train else (ALWAYS, UNTRAINED)
    settings = {name: s for name, s in task.settings.items() if s.inherited in runs}
    if not (settings and model.checkpoint):
        return {}
    if task.transformers.makes_vectors and isinstance(given.pooling, PerModel):
        read_sentence_modules(model.checkpoint_folder.path)  # raises the error
    if model.checkpoint_folder.task != task.name:
        return {}
    path, saved = model.checkpoint_folder.record[0], model.checkpoint_folder.settings
    check_settings(task, saved, path)
    inherited = {}
    for name, setting in settings.items():
        value, trained = getattr(given, name), saved[name]
        is_list = setting.kind is str and setting.inherited == UNTRAINED
        if value is None or isinstance(value, PerModel):
            inherited[name] = trained
        elif is_list and value and trained and {*split_names(value)} != {*split_names(trained)}:
            raise _other_value(name, model.checkpoint_folder, trained, value)
    return inherited


def _other_value(name, folder, trained, value):
    """Returns the error for a flag that contradicts what a folder's model was trained with."""
    return InputError(
        f"--{name} must be what the model in {folder.path} was trained with: {trained}. "
        f"Received: {value}"
    )


def _may_differ(setting, value, saved, do_train):
    """Returns True if a flag may differ from the value that the fine-tuned folder saved."""
    if do_train:
        return setting.changeable == ALWAYS
    return setting.changeable != NEVER or {value, saved} <= {*setting.alike}


def _settings_of_transformers(given, model, task):
    """Returns the flags that the config.json of a fine-tuned transformers model implies.

    They are the labels' type and names, in the order of the classes, and the settings that this
    project's export adds; names such as "LABEL_0" are ignored. Raises an `InputError` if the head
    is for a different task or is not supported.
    """
    if given.do_train or not model.checkpoint or task.transformers.makes_vectors:
        return {}
    folder = model.checkpoint_folder
    file = None if folder.difference else folder.transformers_config
    if not (file and (found := task_of(file.values))):
        return {}
    if found is not task:
        raise InputError(
            "the model must be one for this program, which --do_train makes of any. Received: "
            f"{file.path} of the task {found.name}"
        )
    check_head(file.values, file.path)
    known = exported_settings(file.values, task)
    check_values(task, known, file.path)
    if task.labels is None:
        return known
    dataset = DATASETS.get(given.task_name)
    if task.labels == "classes" and dataset is None and given.task_type is None:
        known["task_type"] = type_of(file.values, file.path)
    labels = None if given.labels else folder.transformers_settings.get("labels")
    if not labels or re.fullmatch(UNNAMED, labels):
        if labels and dataset is None:
            print("note: the model's classes have no names; give --labels in the model's order")
        return known
    names = tuple(labels.split(","))
    if dataset is None:
        return {**known, "labels": labels}
    if names != dataset.labels and set(names) == set(dataset.labels):
        raise InputError(
            f"a model for --task_name={given.task_name} must have the classes "
            f"{', '.join(dataset.labels)} in this order. Received: "
            f"{file.path} with {', '.join(names)}"
        )
    return known
