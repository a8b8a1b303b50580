"""Reads how a folder of sentence-transformers makes one vector of a text."""

import os
import warnings
from typing import Any

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json

MODULES_FILE = "modules.json"
POOLING_FILE = "config.json"

# A flag of 1_Pooling/config.json -> the pooling that it stands for.
POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}

# The last word of a module's type -> what is said where the module is not computed here.
LEFT_OUT = {
    "Dense": "its last layer, a dense one, which is not applied here: vectors differ from its own",
    "Normalize": "vectors of length 1; here they keep their lengths, and cosines are the same",
}


def read_pooling(folder: str) -> str | None:
    """The pooling of a folder's sentence vectors: "mean", "cls" or "max"; None if it names none.

    Warns of other modules, which change vectors too.

    Raises:
        InputError: a file is damaged, or names a pooling that this project does not have.
    """
    modules, path = _read_modules(folder)
    if modules is None:
        parent, name = os.path.split(os.path.abspath(folder))
        modules, path = _read_modules(parent)
        if modules is None or name not in [module.get("path") for module in modules]:
            return None
        folder = parent  # the weights are in 0_Transformer
    pooling = None
    for module in modules:
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            inside = os.path.join(folder, str(module.get("path", "")), POOLING_FILE)
            pooling = _pooling_of(read_json(read_bytes(inside), inside), inside)
        elif kind in LEFT_OUT:
            warnings.warn(f"{path}: the model has {LEFT_OUT[kind]}", stacklevel=2)
    return pooling


def _read_modules(folder):
    """The modules of a folder, None if it lists none, and the file."""
    path = os.path.join(folder, MODULES_FILE)
    if not os.path.isfile(path):
        return None, path
    modules = read_json(read_bytes(path), path)
    if not isinstance(modules, list) or not all(isinstance(each, dict) for each in modules):
        raise InputError(f"{path} must list the modules of the model. Received: other JSON")
    return modules, path


def _pooling_of(values, path):
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold an object. Received: {type(values).__name__}")
    if isinstance(mode := values.get("pooling_mode"), str):  # files of version 5 on
        chosen: list[Any] = [mode]
    else:
        chosen = [
            POOLINGS.get(name, name)
            for name, value in values.items()
            if name.startswith("pooling_mode_") and value is True
        ]
    if len(chosen) != 1 or chosen[0] not in POOLINGS.values():
        raise InputError(
            f"{path} must choose one pooling of {', '.join(POOLINGS.values())}; otherwise give the "
            f"pooling of the vectors yourself. Received: {', '.join(chosen) or 'none'}"
        )
    return chosen[0]
