"""Loads the model of a folder, pre-trained or fine-tuned, as a `LoadedModel`."""

import dataclasses
import re
import warnings
from collections.abc import Mapping
from typing import Any

from bert_common.errors import InputError
from bert_tf.checkpoint import (
    TASK_HEAD_NAMES,
    CheckpointArrays,
    google_name,
    load_arrays,
    part_names,
)
from bert_tf.config import EncoderConfig
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
    check_shapes(config, arrays, kind.model_class.google_names)
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


def check_shapes(
    config: EncoderConfig, arrays: CheckpointArrays, google_names: Mapping[str, str]
) -> None:
    """Compares the sizes of a configuration with the shapes in a file, before a model is built.

    Building a model with a bogus number of layers, such as a billion, would take hours.
    `google_names` is the encoder's table, in which all blocks share rows.
    """
    width, own = config.embedding_size, {google: ours for ours, google in google_names.items()}
    # By our names; None for weights that are not the encoder's.
    found = {google_name(name, own): name for name in arrays.shapes}
    layers = {path.split("/")[0] for path in found if path}
    blocks = layers - {path.split("/")[0] for path in google_names}  # blocks are "layer_{i}" there
    expected = {
        **{f"{min(blocks, default='')}/{n}": s for n, s in config.block.shapes(config).items()},
        "embeddings/word_embeddings": [config.vocab_size, width],
        "embeddings/position_embeddings": [config.max_position_embeddings, width],
        "embeddings/token_type_embeddings": [config.type_vocab_size, width],
    }
    problems = [
        f"! {name}: the configuration has {shape}, the file {list(arrays.shapes[name])}"
        for path, shape in expected.items()
        if (name := found.get(path)) and list(arrays.shapes[name]) != shape
    ]
    if blocks and len(blocks) != config.num_blocks:
        problems.append(
            f"the configuration has {config.num_blocks:,} blocks with weights of their own, the "
            f"file {len(blocks)}"
        )
    if problems:
        raise InputError(
            f"the checkpoint {arrays.source} must fit the model. Received: {'; '.join(problems)}"
        )
