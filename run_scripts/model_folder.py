"""Finds what a folder of run_pretraining holds: configuration, checkpoint, tokenizer."""

import os

from bert_tf.checkpoint_files import EXPORTED_NAME, exists, latest_checkpoint
from tokenization.errors import InputError

CONFIG_NAMES = {"bert": "bert_config.json", "albert": "albert_config.json"}


def find_config(directory):
    """Which model a folder holds, "bert" or "albert", with its configuration's path."""
    for column, name in CONFIG_NAMES.items():
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return column, path
    raise InputError(
        f"--model_dir must hold {' or '.join(CONFIG_NAMES.values())}. Received: {directory}"
    )


def find_checkpoint(directory):
    """The newest checkpoint of a folder, or its export."""
    newest = latest_checkpoint(directory)
    exported = os.path.join(directory, EXPORTED_NAME)
    if newest is None and not exists(exported):
        raise InputError(f"--model_dir must hold a checkpoint. Received: {directory}")
    return newest or exported


def check_table(config, size, where):
    """Refuses a vocabulary that is larger than the model's table.

    Args:
        config: the model's configuration.
        size: of the vocabulary.
        where: the vocabulary's file or folder.
    """
    if size > config.vocab_size:
        raise InputError(
            "vocab_size of the configuration must be at least the vocabulary's size. Received: "
            f"vocab_size={config.vocab_size}, {where} has {size} entries"
        )
