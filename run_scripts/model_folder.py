"""A model's folder: configuration, checkpoint, tokenizer, written and found again."""

import dataclasses
import json
import os

from bert_tf.checkpoint_files import BEST_FOLDER, EXPORTED_NAME, exists, latest_checkpoint
from create_pretraining_data.whole_file import whole_file
from tokenization import save_tokenizer
from tokenization.errors import InputError

# What a fine-tuned model's folder remembers of its task.
SETTINGS_FILE = "finetuning.json"

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
    """The best checkpoint of a folder if there is one, else the newest, else its export."""
    newest = latest_checkpoint(os.path.join(directory, BEST_FOLDER)) or latest_checkpoint(directory)
    exported = os.path.join(directory, EXPORTED_NAME)
    if newest is None and not exists(exported):
        raise InputError(f"a model's folder must hold a checkpoint. Received: {directory}")
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


def describe(directory, column, config, tokenizer):
    """Puts configuration and tokenizer beside the checkpoints: a directory that explains itself.

    Args:
        directory: where the checkpoints are.
        column: "bert" or "albert".
        config: the model's configuration.
        tokenizer: the model's, or None.
    """
    with whole_file(os.path.join(directory, CONFIG_NAMES[column])) as file:
        file.write(json.dumps(dataclasses.asdict(config), indent=2).encode("utf-8") + b"\n")
    if tokenizer is not None:
        save_tokenizer(tokenizer, directory)
