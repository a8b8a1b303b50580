"""Loads the model of a folder, pre-trained or fine-tuned, as a `LoadedModel`."""

import dataclasses
import re
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import keras

from bert_common.errors import InputError
from bert_tf.checkpoint import TABLE, TASK_HEAD_NAMES, CheckpointArrays, load_arrays
from bert_tf.config import EncoderConfig
from bert_tf.encoder import EncoderModel
from finetuning.tasks import TASKS
from model_formats.folder_tokenizer import check_table
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import objective_of
from model_formats.task_records import SETTINGS_FILE, check_settings
from model_formats.weights import open_weights
from tokenization.loading import Tokenizer

# Prefixes of the weights that a pre-trained model's files may lack, all of one prefix or none.
MAY_LACK = (
    "cls/predictions/", "cls/seq_relationship/", "bert/pooler/", "generator/",
    "generator_predictions/", "discriminator_predictions/",
)  # fmt: skip

# The names of a block's weights after the stem; the group is the block, of ALBERT with the place
# inside.
BLOCK_NAMES = r"encoder/(layer_\d+|transformer/group_\d+/inner_group_\d+)/"


def load_folder(
    directory: str, checkpoint: str | None = None, tokenizer: Tokenizer | None = None
) -> LoadedModel:
    """Loads a model with everything that its folder holds.

    Args:
        directory: a folder that this project wrote, or a released model, unpacked.
        checkpoint: the prefix of one of its checkpoints; None for the best, else the newest.
        tokenizer: its tokenizer, where the folder does not say which it is.

    Raises:
        InputError: the folder holds no model, or files that contradict each other.
    """
    return load(ModelFolder.open(directory, checkpoint), tokenizer)


def load(folder: ModelFolder, tokenizer: Tokenizer | None = None, **of_encoder: Any) -> LoadedModel:
    """Loads the model of a `ModelFolder`; `tokenizer` as in `load_folder`.

    `of_encoder` are arguments of the encoder's class beside its configuration.
    """
    config, checkpoint, kind = folder.config, folder.checkpoint, folder.encoder
    tokenizer = tokenizer or folder.tokenizer
    if tokenizer is not None:
        check_table(config, tokenizer.vocab_size, folder.path)
    task, settings = TASKS.get(folder.task), folder.settings
    if task:
        check_settings(task, settings, folder.record[0])
    arrays = open_weights(checkpoint, folder)
    check_shapes(config, arrays, kind.stem)
    encoder = kind.model_class(config, **of_encoder)
    try:
        model, labels = make_model(folder.task, encoder, settings, arrays.shapes)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder.record[0]} must hold what training recorded. Received: {error!r}"
        ) from None
    absent = [
        prefix
        for prefix in (task.may_lack if task else MAY_LACK)
        if not any(name.startswith(prefix) for name in arrays.shapes)
    ]
    arrays = dataclasses.replace(arrays, optional=(*arrays.optional, *absent))
    report = load_arrays(model, arrays)
    moments = tuple(f"{name}/" for name in report.loaded)  # of the model's own variables
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
        folder=folder.path,
    )


def check_shapes(config: EncoderConfig, arrays: CheckpointArrays, stem: str) -> None:
    """Compares the sizes of a configuration with the shapes in a file, before a model is built.

    A configuration that says a thousand million layers would take hours to build. `stem` is how
    Google's names of the encoder's weights begin.
    """
    width = config.embedding_size
    expected = {
        f"{stem}{table}": [rows, width]
        for table, rows in (
            (TABLE, config.vocab_size),
            ("embeddings/position_embeddings", config.max_position_embeddings),
            ("embeddings/token_type_embeddings", config.type_vocab_size),
        )
    }
    found = ((name, re.match(stem + BLOCK_NAMES, name)) for name in arrays.shapes)
    blocks = {name: match[1] for name, match in found if match}
    kernel = next((name for name in blocks if name.endswith("intermediate/dense/kernel")), None)
    if kernel is not None:  # of one block, which may be wider than the tables
        expected[kernel] = [config.hidden_size, config.intermediate_size]
    problems = [
        f"! {name}: the configuration has {shape}, the file {list(arrays.shapes[name])}"
        for name, shape in expected.items()
        if name in arrays.shapes and list(arrays.shapes[name]) != shape
    ]
    stored = {*blocks.values()}
    if stored and len(stored) != config.num_blocks:
        problems.append(
            f"the configuration has {config.num_blocks:,} blocks with weights of their own, the "
            f"file {len(stored)}"
        )
    if problems:
        raise InputError(
            f"the checkpoint {arrays.source} must fit the model. Received: {'; '.join(problems)}"
        )


def make_model(
    task: str, encoder: keras.Model, settings: Mapping[str, Any], names: Collection[str] = ()
) -> tuple[EncoderModel, tuple[str, ...]]:
    """The model of a task around an encoder, with random weights, and its labels.

    The task is a key of `TASKS`, or "pretraining"; `settings` are what a fine-tuned model's folder
    records; Google's names of the weights tell a pre-trained model's objective.
    """
    if task not in TASKS:
        return objective_of(names).make_model(encoder, None), ()
    return TASKS[task].module("head").from_settings(encoder, settings)
