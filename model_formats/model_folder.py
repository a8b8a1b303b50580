"""What a model's folder holds: configuration, checkpoint, trained positions, tokenizer.

The folder is one that this project wrote, or a released model, unpacked: Google's BERT
(bert_config.json, bert_model.ckpt, vocab.txt), its ALBERT (albert_config.json, model.ckpt-best,
30k-clean.model), an ALBERT of TensorFlow Hub (folders "assets" and "variables"), or one that
Hugging Face's transformers wrote (config.json, model.safetensors).
"""

import glob
import json
import os
import warnings

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.folders import kind_of_path, read_bytes
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import (
    BEST_FOLDER,
    EXPORTED_NAME,
    best_checkpoint,
    exists,
    latest_checkpoint,
    list_other_checkpoints,
)
from bert_tf.config import is_of_transformers
from model_formats.huggingface.config import CONFIG_FILE, read_config
from model_formats.huggingface.safetensors_files import find_safetensors, refuse_pickles
from tokenization import save_tokenizer

# Where a fine-tuned model's folder records its task flags.
SETTINGS_FILE = "finetuning.json"

CONFIG_NAMES = {"bert": "bert_config.json", "albert": "albert_config.json"}

# Where a model's folder records how many positions were trained: a separate file, as some tools
# refuse configurations with unknown keys.
POSITIONS_FILE, POSITIONS_KEY = "pretraining.json", "trained_positions"

# google-research/albert's name for its best checkpoint, and for its released ones.
BEST_NAME = "model.ckpt-best"

# The model that comes with this project, at the root of a checkout and beside the packages of an
# installation: what `export_model.py --format=huggingface --precision=float16` wrote.
REFERENCE_MODEL = os.path.join(os.path.dirname(os.path.dirname(__file__)), "reference_model")

# Where a module of TensorFlow Hub has its configuration and vocabulary, and its checkpoint.
HUB_ASSETS, HUB_VARIABLES = "assets", "variables"

# Weights of transformers 4 that transformers itself no longer reads.
OTHER_WEIGHTS = ("tf_model.h5", "flax_model.msgpack")


def find_folder(directory, what="--model_dir"):
    """The folder with the configuration: the given one, or the only such one in it.

    Args:
        directory: where to look.
        what: how a message names it.
    """
    if (kind := kind_of_path(directory)) != "a folder":
        raise InputError(f"{what} must be a folder. Received: {directory}, {kind}")
    folders = _model_folders(directory)
    if not folders:
        raise InputError(
            f"{what} must hold {' or '.join(CONFIG_NAMES.values())}, or {CONFIG_FILE} of "
            f"transformers. Received: {directory}"
        )
    if folders[0] != directory and len(folders) > 1:
        raise InputError(
            f"{what} must be the folder of one model. Received: {directory}, which holds "
            f"{', '.join(os.path.basename(os.path.normpath(path)) for path in folders)}"
        )
    return os.path.normpath(folders[0])


def _model_folders(directory):
    inside = sorted(glob.glob(os.path.join(glob.escape(directory), "*", "")))
    return [path for path in (directory, *inside) if _configs(path)]


def find_config(directory):
    """The model type of a folder, "bert" or "albert", and its configuration's path."""
    configs = _configs(directory)
    if len(configs) != 1:
        raise InputError(
            f"a model's folder must hold {' or '.join(CONFIG_NAMES.values())}. Received: "
            f"{directory} with {'both' if configs else 'neither'}"
        )
    model_type, path = configs[0]
    return model_type or read_config(path).model_type, path


def _configs(directory):
    """Pairs of model type and path; the type in a file of transformers is None until it is read."""
    paths = (
        (model_type, os.path.join(directory, name)) for model_type, name in CONFIG_NAMES.items()
    )
    found = [(model_type, path) for model_type, path in paths if os.path.isfile(path)]
    return found or ([(None, path)] if (path := huggingface_config(directory)) else [])


def huggingface_config(directory):
    """The config.json of a folder that transformers wrote, or None."""
    path = os.path.join(directory, CONFIG_FILE)
    if not os.path.isfile(path):
        return None
    try:
        values = read_json(read_bytes(path), path)
    except InputError:  # another program's
        return None
    return path if isinstance(values, dict) and is_of_transformers(values) else None


def find_checkpoint_below(directory):
    """The checkpoint of the one model in a folder; a configuration may be missing, as in best/."""
    folders = _model_folders(directory)
    return find_checkpoint(
        find_folder(directory, "a folder with weights") if folders else directory
    )


def find_checkpoint(directory):
    """The checkpoint that represents a folder's model: its prefix, or a safetensors file.

    It is the best one if an evaluation has chosen one, else the newest, else an export, else the
    only one with another name, else model.safetensors or the index of its shards.
    """
    if os.path.basename(directory) == HUB_ASSETS:
        directory = os.path.join(os.path.dirname(directory), HUB_VARIABLES)
    is_best = os.path.basename(os.path.normpath(directory)) == BEST_FOLDER
    for prefix in (
        best_checkpoint(os.path.join(directory, BEST_FOLDER)),
        os.path.join(directory, BEST_NAME),
        best_checkpoint(directory) if is_best else latest_checkpoint(directory),
        os.path.join(directory, EXPORTED_NAME),
    ):
        if prefix and exists(prefix):
            return prefix
    others = list_other_checkpoints(directory)
    if not others and (path := find_safetensors(directory)):
        return path
    if not others:
        refuse_pickles(directory)
        found = [name for name in OTHER_WEIGHTS if os.path.exists(os.path.join(directory, name))]
        raise InputError(
            "a model's folder must hold a checkpoint. Received: "
            + " with ".join([directory, *(f"{name}, which is not read" for name in found)])
        )
    if len(others) > 1:
        raise InputError(
            "a model's folder must hold one checkpoint, unless they are called "
            f"{EXPORTED_NAME}-STEP; --init_checkpoint chooses one. Received: {directory} with "
            f"{', '.join(map(os.path.basename, others))}"
        )
    return others[0]


def folder_of(checkpoint):
    """The folder that describes a checkpoint; the best checkpoint has a folder inside it."""
    folder = os.path.dirname(os.path.abspath(checkpoint))
    return os.path.dirname(folder) if os.path.basename(folder) == BEST_FOLDER else folder


def read_settings_file(path):
    """What a fine-tuned model's folder records, a dict.

    Raises:
        InputError: the file holds something else.
    """
    settings = read_json(read_bytes(path), path)
    if not isinstance(settings, dict):
        raise InputError(f"{path} must hold an object. Received: {type(settings).__name__}")
    return settings


def write_settings_file(directory, settings):
    """Writes what a fine-tuned model's folder records of its task, a dict."""
    with atomic_write(os.path.join(directory, SETTINGS_FILE)) as file:
        file.write(json.dumps(settings, ensure_ascii=False, indent=2).encode("utf-8") + b"\n")


def read_trained_positions(checkpoint):
    """The number of positions a checkpoint was trained with; None if its folder has no record.

    Raises:
        InputError: the file holds something else.
    """
    path = os.path.join(folder_of(checkpoint), POSITIONS_FILE)
    if not os.path.exists(path):
        return None
    content = read_json(read_bytes(path), path)
    positions = content.get(POSITIONS_KEY) if isinstance(content, dict) else None
    if type(positions) is not int or positions < 1:
        raise InputError(f"{path} must hold {POSITIONS_KEY}, from 1 on. Received: {content!r}")
    return positions


def add_trained_positions(checkpoint, longest):
    """The number of positions that are trained once this run ends; None if unknown for its start.

    Args:
        checkpoint: what the training starts from, or None for new weights.
        longest: the pieces of its longest sequence.
    """
    if checkpoint is None:
        return longest
    known = read_trained_positions(checkpoint)
    return known and max(known, longest)


def warn_of_untrained_positions(checkpoint, longest, what):
    """Warns if a sequence is longer than those that a checkpoint's model was trained with.

    Args:
        checkpoint: its prefix.
        longest: the number of the sequence's pieces.
        what: the sequence, for the message.
    """
    known = read_trained_positions(checkpoint)
    if known is not None and longest > known:
        warnings.warn(
            f"{what} has {longest} pieces, but {checkpoint} was trained on sequences of at most "
            f"{known}: its weights for the positions after that are untrained (pre-train it "
            "further on longer sequences, or make the input shorter)",
            stacklevel=2,
        )


def write_model_files(directory, model_type, config, tokenizer, positions):
    """Writes configuration and tokenizer beside the checkpoints, so that the folder is complete.

    Args:
        directory: the folder of the checkpoints.
        model_type: "bert" or "albert".
        config: the model's configuration.
        tokenizer: the model's, or None.
        positions: the number of trained positions, or None if unknown.
    """
    with atomic_write(os.path.join(directory, CONFIG_NAMES[model_type])) as file:
        file.write(json.dumps(config.to_dict(), indent=2).encode("utf-8") + b"\n")
    write_trained_positions(directory, positions)
    if tokenizer is not None:
        save_tokenizer(tokenizer, directory)


def write_trained_positions(directory, positions):
    """Records the number of trained positions; removes an earlier record if it is None."""
    path = os.path.join(directory, POSITIONS_FILE)
    if positions is not None:
        with atomic_write(path) as file:
            file.write(json.dumps({POSITIONS_KEY: positions}).encode("utf-8") + b"\n")
    elif os.path.exists(path):  # of an earlier model
        os.remove(path)
