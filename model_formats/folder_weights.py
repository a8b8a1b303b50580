"""Finds the weights of a model's folder."""

import os

from bert_common.errors import InputError
from bert_tf.checkpoint_files import (
    EXPORTED_NAME,
    best_checkpoint,
    chosen_checkpoint,
    exists,
    latest_checkpoint,
    list_other_checkpoints,
)
from model_formats.transformers_files.safetensors_files import find_safetensors, refuse_pickles

# The subfolders of a TensorFlow Hub module with its configuration and vocabulary, and checkpoint.
HUB_ASSETS, HUB_VARIABLES = "assets", "variables"

# Weight files of transformers 4, which transformers itself no longer reads.
OTHER_WEIGHTS = ("tf_model.h5", "flax_model.msgpack")


def find_checkpoint(directory: str, is_best: bool = False) -> str:
    """Returns the best checkpoint if an evaluation has chosen one, else the newest, else an export.

    If there is none, returns the only one with a different name, model.safetensors or the index of
    its shards. `is_best`: training made the folder for its best checkpoint.
    """
    if os.path.basename(os.path.abspath(directory)) == HUB_ASSETS:
        directory = os.path.join(os.path.dirname(os.path.abspath(directory)), HUB_VARIABLES)
    if prefix := trained_checkpoint(directory, is_best):
        return prefix
    if exists(prefix := os.path.join(directory, EXPORTED_NAME)):
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


def trained_checkpoint(directory: str, is_best: bool = False) -> str | None:
    """Returns the best or else the newest checkpoint of a training, Google's or not, or None.

    `is_best` is as in `find_checkpoint`.
    """
    if chosen := chosen_checkpoint(directory):
        return chosen
    return best_checkpoint(directory) if is_best else latest_checkpoint(directory)


def check_output(output_dir: str, folder: str) -> None:
    """Raises an `InputError` if the output folder holds a model, the input or a different one."""
    if os.path.isdir(output_dir) and (
        os.path.samefile(output_dir, folder)
        or latest_checkpoint(output_dir)
        or list_other_checkpoints(output_dir)
        or exists(os.path.join(output_dir, EXPORTED_NAME))
        or find_safetensors(output_dir)
    ):
        raise InputError(
            "--output_dir must be a folder without a model. Received: "
            f"{output_dir}, which holds one"
        )
