"""Exports a fine-tuned model as low-rank differences from its base model."""

import os

import numpy as np

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_tf.checkpoint import google_variables
from model_formats.difference import split
from model_formats.difference_files import DESCRIPTION_FILE, VERSION, WEIGHTS_FILE, digest_of
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import ModelFolder, write_records
from model_formats.transformers_files.safetensors_files import save_file
from model_formats.weights import as_float16, open_weights

# The default of --rank. Four layers of 256 take less than a megabyte in float16.
RANK = 24


def export(
    loaded: LoadedModel,
    directory: str,
    base_dir: str | None = None,
    rank: int | None = None,
    precision: str = "float32",
) -> str:
    """Writes the difference between a fine-tuned model and its base, and prints rank and sizes.

    Args:
        directory: an existing, empty folder next to its final path.
        base_dir: the folder of the model that the training started from.
        rank: the rank of every matrix; None for `RANK`. Smaller matrices are stored exactly.
        precision: the type of the stored arrays, "float32" or "float16".

    Raises:
        InputError: the model is not fine-tuned, or does not fit the base.
    """
    if base_dir is None:
        raise InputError("--format=difference needs --base_dir. Received: none")
    base = ModelFolder.open(base_dir, what="--base_dir")
    if base.difference is not None:
        raise InputError(
            f"--base_dir must hold all weights. Received: {base_dir}, a difference itself"
        )
    check_base(loaded, base)
    source = open_weights(base.checkpoint)
    weights = {
        name: np.asarray(variable.value, np.float32)
        for name, variable in google_variables(loaded.model).items()
        if name not in loaded.missing
    }
    rank = RANK if rank is None else rank
    arrays, lost = split(weights, source, base.encoder.stem, rank)
    if precision == "float16":
        arrays = as_float16(arrays)
    save_file(arrays, os.path.join(directory, WEIGHTS_FILE))
    path = os.path.relpath(os.path.realpath(base.path), os.path.realpath(directory))
    description = {"version": VERSION, "base": path.replace(os.sep, "/")}
    description |= {"base_sha256": digest_of(base.checkpoint), "rank": rank}
    write_json(os.path.join(directory, DESCRIPTION_FILE), description)
    stages = loaded.stages
    write_records(directory, loaded.trained_positions, loaded.task, loaded.settings, stages)
    size = os.path.getsize(os.path.join(directory, WEIGHTS_FILE))
    count = sum(value.size for value in weights.values())
    print(
        f"rank {rank}, {precision}: {size:,} bytes for {count:,} weights; the part of the "
        f"difference that is lost: {np.sqrt(lost):.4f}"
    )
    return "from korean_bert import load_model; load_model('{folder}')"


def check_base(loaded: LoadedModel, base: ModelFolder) -> None:
    """Raises an `InputError` unless a model is fine-tuned and fits the base's files."""
    own = loaded.folder.path
    if loaded.task == "pretraining":
        raise InputError(
            f"--format=difference needs a fine-tuned model. Received: {own}, pre-trained"
        )
    one, two = (t and t.fingerprint() for t in (loaded.tokenizer, base.tokenizer))
    if one != two:  # the difference is loaded with the base's tokenizer
        raise InputError(
            "a difference needs a base with the same tokenizer, of the same vocabulary and "
            f"options. Received: {base.path} for {own}"
        )
    mine, theirs = loaded.config.to_dict(), base.config.to_dict()
    names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    if names or loaded.model_type != base.model_type:
        name = next(iter(names), "model_type")
        raise InputError(
            f"a difference needs a base with the same configuration. Received: {base.path} for "
            f"{own}, where {name} is {theirs.get(name)} for {mine.get(name)}"
        )
