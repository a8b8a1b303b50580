"""Reads the weights of a Hugging Face folder by Google's names."""

import os
import re
import warnings
from collections.abc import Callable

import numpy as np

from bert_common.errors import InputError
from bert_tf.checkpoint import CheckpointArrays, google_name
from model_formats.transformers_files.config import (
    ACTIVATIONS_BACK,
    CONFIG_FILE,
    KINDS,
    read_config,
)
from model_formats.transformers_files.electra_classifier import DENSE, NAMES, OUT, is_linear
from model_formats.transformers_files.names import (
    IGNORED_NAMES,
    OPTIONAL_PARTS,
    TIED_NAMES,
)
from model_formats.transformers_files.safetensors_files import open_tensors

# The first words of names in an encoder that was saved alone, without the model's prefix.
ENCODER_PARTS = ("embeddings.", "embeddings_project.", "encoder.", "pooler.")

# The suffix of the name of the word embeddings.
TABLE = "embeddings.word_embeddings.weight"

PROJECTION = "albert.encoder.embedding_hidden_mapping_in."

# A function that converts an array of transformers to Google's layout.
Convert = Callable[[np.ndarray], np.ndarray]


def open_huggingface(path: str) -> CheckpointArrays:
    """Opens the weights of a model that transformers saved.

    Weights that are in no table keep their names, so that loading rejects them.

    Args:
        path: model.safetensors, or the index of its shards, in the folder with config.json.

    Raises:
        InputError: a file is missing or damaged, the configuration is for an unsupported model,
            two tensors are the same variable, or weights that must be equal differ.
    """
    config_path = os.path.join(os.path.dirname(path), CONFIG_FILE)
    if not os.path.isfile(config_path):
        raise InputError(f"{path} must have its {CONFIG_FILE} beside it. Received: none")
    tensors = open_tensors(path)
    # Files of 2019 lack the model_type, which the prefix of names tells.
    kinds = (kind for kind in KINDS for name in tensors.shapes if name.startswith(f"{kind}."))
    model = read_config(config_path, next(kinds, None))
    stored = _full_names(tensors, model.kind)
    ignored = _take_tied(stored, tensors)
    ignored += [stored.pop(name) for name in list(stored) if _is_ignored(name, stored)]
    if PROJECTION + "weight" in stored and model.config.embedding_size == model.config.hidden_size:
        ignored += _take_identity(stored, tensors)
    linear = _take_linear_head(stored, tensors, model.kind)
    ignored += linear
    shapes: dict[str, list[int]] = {}
    readers: dict[str, tuple[str, Convert]] = {}
    for full, name in stored.items():
        google = google_name(full, model.names) or name
        if google in readers:
            raise InputError(
                f"{path} must hold {google} once. Received: {readers[google][0]}, {name}"
            )
        convert = _conversion(google, model)
        # A view without memory, which shows the array's shape after conversion.
        view = np.broadcast_to(np.float32(0), tensors.shapes[name])
        shapes[google] = list(convert(view).shape)
        readers[google] = (name, convert)
    if linear:
        count = len(tensors.read(OUT + "bias"))
        shapes |= {"output_weights": [count, model.config.hidden_size], "output_bias": [count]}
        readers["output_weights"] = (DENSE + "weight", lambda dense: dense[:count])  # [C, H]
        readers["output_bias"] = (OUT + "bias", lambda bias: bias)
    _check_head(shapes, model, path)

    def read(google):
        name, convert = readers[google]
        return np.ascontiguousarray(convert(tensors.read(name)))

    # An ELECTRA's sequence head that is in `shapes` is not linear: only training starts without it.
    heads = (re.escape(DENSE), re.escape(OUT)) if model.kind == "electra" else ()
    return CheckpointArrays(
        path, shapes, read, OPTIONAL_PARTS, tuple(sorted(ignored)), model.config, heads=heads
    )


def _full_names(tensors, kind):
    """Maps each name with the model's prefix to its name in the file, which may lack the prefix.

    A prefix of all names is removed, such as "module." of PyTorch's DataParallel.
    """
    outer = _outer_prefix(tensors.shapes, kind)
    if outer:
        warnings.warn(
            f"{tensors.source}: the model's names begin with {outer!r} there, which is left out",
            stacklevel=2,
        )
    names = {name.removeprefix(outer): name for name in tensors.shapes}
    bare = not any(name.startswith(f"{kind}.") for name in names)
    return {
        f"{kind}.{name}" if bare and name.startswith(ENCODER_PARTS) else name: stored
        for name, stored in names.items()
    }


def _outer_prefix(names, kind):
    """Returns the prefix before the names of a model and of its heads, or ""."""
    stems = [name.removesuffix(TABLE) for name in names if name.endswith(TABLE)]
    if len(stems) != 1:
        return ""
    outer = stems[0].removesuffix(f"{kind}.")
    is_clear = len({name.removeprefix(outer) for name in names}) == len(names)
    return outer if is_clear else ""


def _take_tied(stored, tensors):
    """Removes copies of tied weights, which must be equal; returns their names in the file.

    If a file holds only the copy, the copy is used as the weight.
    """
    taken = []
    for copy, original in TIED_NAMES.items():
        if copy not in stored:
            continue
        name = stored.pop(copy)
        if original not in stored:
            stored[original] = name
            continue
        if not np.array_equal(tensors.read(name), tensors.read(stored[original])):
            raise InputError(
                f"{tensors.source}: {name} must equal {stored[original]}, as the models here share "
                "them. Received: other values"
            )
        taken.append(name)
    return taken


def _is_ignored(name, stored):
    # A RoBERTa with a sequence head may also have a pooler, which the head does not use.
    unused_pooler = name.startswith("roberta.pooler.") and "classifier.dense.weight" in stored
    return unused_pooler or any(re.fullmatch(pattern, name) for pattern in IGNORED_NAMES)


def _take_identity(stored, tensors):
    """Removes ALBERT's projection of equally wide embeddings if it is the identity."""
    names = [name for name in (PROJECTION + "weight", PROJECTION + "bias") if name in stored]
    kernel = tensors.read(stored[names[0]])  # [H, E]
    identity = kernel.ndim == 2 and np.array_equal(kernel, np.eye(*kernel.shape))
    if not identity or any(tensors.read(stored[name]).any() for name in names[1:]):
        return []  # loading rejects the names, as Google's ALBERT has no such layer
    return [stored.pop(name) for name in names]


def _take_linear_head(stored, tensors, kind):
    """Removes the two layers of an ELECTRA's sequence head if they equal one linear layer."""
    if kind != "electra" or not all(name in stored for name in NAMES):
        return []
    if not is_linear({name: tensors.read(stored[name]) for name in NAMES}):
        return []  # no model here has such a head
    return [stored.pop(name) for name in NAMES]


def _conversion(google, model):
    """Returns the function that converts an array of transformers to Google's layout."""
    if google.endswith("/kernel"):
        return np.transpose  # [out, in] -> [in, out]
    if google.endswith("/embeddings/position_embeddings"):
        return lambda rows: rows[model.skipped_positions :]
    if google.endswith("/embeddings/token_type_embeddings"):
        # One type stands for both segments.
        return lambda rows: np.repeat(rows, 2, axis=0) if len(rows) == 1 else rows
    return lambda array: array


def _check_head(shapes, model, path):
    """Requires gelu's erf form, which RoBERTa's and ELECTRA's masked-word heads always use."""
    has_head = any(name.startswith("cls/predictions/") for name in shapes)
    if model.kind in ("roberta", "electra") and has_head and model.config.hidden_act != "gelu_erf":
        raise InputError(
            f"{path}: hidden_act in {CONFIG_FILE} must be gelu, which transformers always uses in "
            f"this head for masked words. Received: {ACTIVATIONS_BACK[model.config.hidden_act]}"
        )
