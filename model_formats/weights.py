"""Opens the weights of any model that this project reads, whatever their format.

PREFIX.index                          a checkpoint of Google, this project or the Model Garden
model.safetensors, ...index.json      a model of transformers, with config.json in the same folder
difference.safetensors                differences from a base (`model_formats.difference`)
a folder                              a folder with any of these
"""

import dataclasses
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bert_common.errors import InputError
from bert_common.folders import kind_of_path
from bert_tf.checkpoint_files import exists
from model_formats.difference_files import WEIGHTS_FILE
from model_formats.encoders import ENCODERS
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import OBJECTIVES
from model_formats.transformers_files.safetensors_files import open_tensors, refuse_pickles

if TYPE_CHECKING:
    from bert_tf.checkpoint import CheckpointArrays

_SAFETENSORS = (".safetensors", ".safetensors.index.json")


def find_weights(path: str) -> str:
    """Returns the checkpoint prefix or weight file that a path stands for.

    The path is a prefix, a file, or a folder of any known kind. A pickle is an `InputError`.
    """
    if exists(path):
        return path
    refuse_pickles(path)
    if os.path.isdir(path):
        return ModelFolder.open(path, what="a folder with weights", needs_config=False).checkpoint
    if path.endswith(_SAFETENSORS) and os.path.isfile(path):
        return path
    kind = kind_of_path(path)
    ending = re.search(r"\.(index|meta|data-\d+-of-\d+)$", path)
    if kind == "a file" and ending and exists(prefix := path.removesuffix(ending[0])):
        raise InputError(
            f"a checkpoint must be named without {ending[0]}: {prefix}. Received: {path}"
        )
    found = "another file" if kind == "a file" else kind
    raise InputError(
        f"weights must be a checkpoint (a file {path}.index), a .safetensors file, or a folder "
        f"with one of them. Received: {path}, {found}"
    )


def check_weights(path: str) -> str:
    """Does the work of `find_weights`, and checks headers too, without importing TensorFlow."""
    path = find_weights(path)
    if path.endswith(_SAFETENSORS) and not exists(path):
        open_tensors(path)
    folder = ModelFolder.beside(path)
    if os.path.basename(path) == WEIGHTS_FILE and folder.difference:
        folder.difference.check_base(folder.base.checkpoint)
    return path


def open_weights(path: str) -> "CheckpointArrays":
    """Opens the weights at a path that `find_weights` accepts, as the files beside them say."""
    from bert_tf.checkpoint import google_arrays, open_checkpoint

    path = find_weights(path)
    folder = ModelFolder.beside(path)
    if not exists(path):
        if os.path.basename(path) == WEIGHTS_FILE and folder.difference:
            from model_formats.difference import join

            base = folder.base
            folder.difference.check_base(base.checkpoint)
            return join(path, open_weights(base.checkpoint), base.encoder.stem)
        from model_formats.transformers_files.weights import open_huggingface

        return open_huggingface(path)
    reader = open_checkpoint(path)
    from model_formats.model_garden import OBJECT_GRAPH, open_model_garden

    if reader.has_tensor(OBJECT_GRAPH):
        return open_model_garden(reader, path)
    heads = tuple(objective.weights for objective in OBJECTIVES.values() if objective.weights)
    # A checkpoint whose names do not tell its encoder is read as the one of the configuration.
    described = [file.expected for file in folder.config_files if file.expected]
    stems = list(dict.fromkeys(ENCODERS[kind].stem for kind in (*described, *ENCODERS)))
    return dataclasses.replace(google_arrays(path, stems), heads=heads)


def check_names(arrays: "CheckpointArrays") -> None:
    """Raises an `InputError` if weights belong to no model here, as nothing could load them."""
    # Google's names have no dots. A weight that a format's table lacks keeps its original name.
    if odd := [name for name in arrays.shapes if "." in name]:
        raise InputError(
            f"the checkpoint {arrays.source} must hold the weights of a model that this project "
            f"has. Received: {', '.join(odd[:3])}{', ...' if len(odd) > 3 else ''}"
        )


def as_float16(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rounds arrays to float16, which halves their file; overflow is an `InputError`."""
    rounded = {}
    for name, array in arrays.items():
        with np.errstate(over="ignore"):
            rounded[name] = array.astype(np.float16)
        if not np.isfinite(rounded[name]).all():
            worst = array[~np.isfinite(rounded[name])][0]
            raise InputError(
                f"--precision=float16 must hold every weight, at most {np.finfo(np.float16).max:,} "
                f"(--precision=float32 does). Received: {worst:.6g} in {name}"
            )
    return rounded
