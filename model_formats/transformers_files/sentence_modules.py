"""Reads and writes how a sentence-transformers folder computes the vector of a text."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from tokenization import load_tokenizer

MODULES_FILE = "modules.json"
POOLING_FOLDER, POOLING_FILE = "1_Pooling", "config.json"
NORMALIZE_FOLDER = "2_Normalize"
LENGTH_FILE = "sentence_bert_config.json"
TOKENIZER_FILE = "tokenizer_config.json"
PROMPTS_FILE = "config_sentence_transformers.json"

# A key of PROMPTS_FILE that would change the vectors -> what to do instead.
REMEDIES = {
    "default_prompt_name": "put the prompt before your texts",
    "truncate_dim": "cut the vectors",
}

# A flag of 1_Pooling/config.json -> the pooling that it stands for.
POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}

# The class names of the supported modules.
KNOWN = ("Transformer", "Pooling", "Normalize")

# The prefix of a module's type, in the form that versions 1 to 6 read.
TYPES = "sentence_transformers.models."


class SentenceModules(NamedTuple):
    """The modules after the encoder."""

    pooling: str  # "mean", "cls" or "max"
    normalize: bool = False  # whether vectors have length 1
    max_seq_length: int | None = None  # the most tokens of a text; None for the model's positions


def read_sentence_modules(folder: str) -> SentenceModules | None:
    """Reads the modules of a folder; returns None if it lists none, or no pooling.

    `folder` is the folder with modules.json, or its subfolder with the weights.
    """
    modules, path = _read_list(folder)
    if modules is None:
        parent, name = os.path.split(os.path.abspath(folder))
        modules, path = _read_list(parent)
        if modules is None or name not in [module.get("path") for module in modules]:
            return None
        folder = parent  # the weights are in 0_Transformer
    found = {str(m.get("type", "")).rpartition(".")[2]: str(m.get("path", "")) for m in modules}
    others = [kind for kind in found if kind not in KNOWN]
    if others:
        raise InputError(
            f"{path} must list no modules but {', '.join(KNOWN)}; otherwise give the pooling of "
            f"the vectors yourself. Received: {', '.join(others)}"
        )
    if "Pooling" not in found:
        return None
    inside = os.path.join(folder, found["Pooling"], POOLING_FILE)
    pooling = _pooling_of(_read_object(inside), inside)
    _check_options(os.path.join(folder, PROMPTS_FILE))
    encoder = os.path.join(folder, found.get("Transformer", ""))
    _check_case(encoder)
    length = _length_of(encoder)
    return SentenceModules(pooling, "Normalize" in found, length)


def pooling_of(settings: Mapping[str, Any], folder: str) -> str:
    """Returns a model's pooling of a text into one vector, "mean", "cls" or "max".

    It is "mean", unless the folder records that vectors were trained with a different pooling.
    """
    if pooling := settings.get("pooling"):
        return str(pooling)
    modules = read_sentence_modules(folder)
    return modules.pooling if modules else "mean"


def write_sentence_modules(directory: str, modules: SentenceModules, size: int) -> None:
    """Writes the files that `SentenceTransformer(directory)` reads besides the encoder's.

    `size` is H, the size of the encoder's vectors.
    """
    folders = {"Transformer": "", "Pooling": POOLING_FOLDER}
    if modules.normalize:
        folders["Normalize"] = NORMALIZE_FOLDER
    listed = [
        {"idx": number, "name": str(number), "path": folder, "type": f"{TYPES}{kind}"}
        for number, (kind, folder) in enumerate(folders.items())
    ]
    for folder in filter(None, folders.values()):
        os.makedirs(os.path.join(directory, folder), exist_ok=True)
    modes = {flag: pooling == modules.pooling for flag, pooling in POOLINGS.items()}
    length = {"max_seq_length": modules.max_seq_length, "do_lower_case": False}
    write_json(os.path.join(directory, MODULES_FILE), listed)
    path = os.path.join(directory, POOLING_FOLDER, POOLING_FILE)
    write_json(path, {"word_embedding_dimension": size, **modes})
    write_json(os.path.join(directory, LENGTH_FILE), length)
    prompts: dict[str, Any] = {"prompts": {}}
    prompts |= {"default_prompt_name": None, "similarity_fn_name": "cosine"}
    write_json(os.path.join(directory, PROMPTS_FILE), prompts)


def _read_list(folder):
    """Returns the modules of a folder, None if it lists none, and the file's path."""
    path = os.path.join(folder, MODULES_FILE)
    if not os.path.isfile(path):
        return None, path
    modules = read_json(read_bytes(path), path)
    if not isinstance(modules, list) or not all(isinstance(each, dict) for each in modules):
        raise InputError(f"{path} must list the modules of the model. Received: other JSON")
    return modules, path


def _read_object(path):
    values = read_json(read_bytes(path), path)
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold an object. Received: {type(values).__name__}")
    return values


def _pooling_of(values, path):
    mode = values.get("pooling_mode")
    if mode is not None:  # written since version 5
        chosen: list[Any] = mode if isinstance(mode, list) else [mode]
    else:
        chosen = [
            POOLINGS.get(name, name)
            for name, value in values.items()
            if name.startswith("pooling_mode_") and value is True
        ]
    if len(chosen) != 1 or chosen[0] not in POOLINGS.values():
        raise InputError(
            f"{path} must choose one pooling of {', '.join(POOLINGS.values())}; otherwise give the "
            f"pooling of the vectors yourself. Received: {', '.join(map(str, chosen)) or 'none'}"
        )
    return chosen[0]


def _check_options(path):
    """Raises an `InputError` if texts get a default prompt or vectors are truncated."""
    values = _read_object(path) if os.path.isfile(path) else {}
    for key, remedy in REMEDIES.items():
        if values.get(key) is not None:
            raise InputError(
                f"{path} must have no {key}; otherwise {remedy}, and give the pooling of the "
                f"vectors yourself. Received: {values[key]!r:.60}"
            )


def _check_case(folder):
    """Raises an `InputError` if texts are lower-cased for a tokenizer that keeps capitals."""
    path = os.path.join(folder, LENGTH_FILE)
    lowers = _read_object(path).get("do_lower_case") if os.path.isfile(path) else None
    if lowers and not load_tokenizer(folder).do_lower_case:
        raise InputError(
            f"{path} must have no do_lower_case beside a tokenizer that keeps capitals; otherwise "
            "lower-case your texts, and give the pooling of the vectors yourself. Received: "
            f"{lowers!r:.60}"
        )


def _length_of(folder):
    """Returns sentence-transformers' maximum length, else the tokenizer's, as version 6 does."""
    for name, key in ((LENGTH_FILE, "max_seq_length"), (TOKENIZER_FILE, "model_max_length")):
        path = os.path.join(folder, name)
        length = _read_object(path).get(key) if os.path.isfile(path) else None
        if length is None:
            continue
        # At least [CLS], a token and [SEP].
        if type(length) not in (int, float) or not 3 <= length < float("inf"):
            raise InputError(f"{path}: {key} must be a number from 3 on. Received: {length!r:.60}")
        return int(length)
    return None
