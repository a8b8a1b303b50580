"""Loads the model of a folder, pre-trained or fine-tuned, as a `LoadedModel`."""

import dataclasses
import re
import warnings
from typing import Any

from bert_common.errors import InputError
from bert_tf.checkpoint import TASK_HEAD_NAMES, load_arrays, part_names
from finetuning.tasks import TASKS
from model_formats.folder_tokenizer import check_table
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import objective_of
from model_formats.task_records import SETTINGS_FILE, check_settings
from model_formats.weights import open_weights
from tokenization.loading import Tokenizer


def load(folder: ModelFolder, tokenizer: Tokenizer | None = None, **of_encoder: Any) -> LoadedModel:
    """Loads a model with everything that its folder holds.

    Args:
        tokenizer: its tokenizer; None to take the folder's.
        of_encoder: further arguments of the encoder's class.

    Raises:
        InputError: the folder's files contradict each other.
    """
    config, checkpoint, kind = folder.config, folder.checkpoint, folder.encoder
    tokenizer = tokenizer or folder.tokenizer
    if tokenizer is not None:
        check_table(config, tokenizer.vocab_size, folder.path)
    task, settings = TASKS.get(folder.task), folder.settings
    if task:
        check_settings(task, settings, folder.record[0])
    arrays = open_weights(checkpoint)
    encoder, objective = kind.make_model(config, **of_encoder), objective_of(arrays.shapes)
    try:
        if task:
            model, labels = task.module("head").from_settings(encoder, settings)
        else:
            model, labels = objective.make_model(encoder), ()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder.record[0]} must hold what training recorded. Received: {error!r}"
        ) from None
    absent = [
        part
        for part in (task or objective).may_lack
        if arrays.shapes.keys().isdisjoint(part_names(model, part))
    ]
    arrays = dataclasses.replace(arrays, optional=(*arrays.optional, *absent))
    report = load_arrays(model, arrays)
    moments = tuple(f"{name}/" for name in report.loaded)  # prefixes of optimizer slots
    ignored = (name for name in report.ignored if not name.startswith(moments))
    heads = [name for name in ignored if re.search(TASK_HEAD_NAMES, name)]
    if heads:
        warnings.warn(
            f"{report.checkpoint} has a head, {', '.join(heads)}, of a task that its folder does "
            f"not describe ({SETTINGS_FILE}): it is left out",
            stacklevel=3,
        )
    return LoadedModel(
        model=model,
        task=folder.task,
        model_type=kind.name,
        config=config,
        tokenizer=tokenizer,
        labels=labels,
        missing=report.missing,
        settings=settings,
        trained_positions=folder.trained_positions,
        source=report.checkpoint,
        folder=folder,
    )


def load_folder(
    directory: str, checkpoint: str | None = None, tokenizer: Tokenizer | None = None
) -> LoadedModel:
    """Opens the folder at a path and loads its model; `checkpoint` as in `ModelFolder.open`."""
    return load(ModelFolder.open(directory, checkpoint), tokenizer)
