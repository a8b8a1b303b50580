"""Stores a fine-tuned model as low-rank differences from its base model.

Besides the records of task and training, the folder holds:

    difference.json           the version, the relative path of the base's folder, the digest of
                              the base's weights, and the rank
    difference.safetensors    what is added to each weight of the base, by Google's names. For a
                              matrix this is the product of NAME/left [rows, r] and NAME/right
                              [r, columns], for any other array NAME/whole. A weight that the
                              base lacks, such as the task head's, is stored as NAME/new.

Configuration and tokenizer are the base's. Unchanged weights are not stored. The best rank-r
approximation of a matrix in the sum of squares is its singular value decomposition truncated to r
values (Eckart and Young, 1936). Like LoRA (arXiv:2106.09685), the result is a low-rank addition to
frozen weights, but it is computed after training instead of being trained.

Shapes: r rank.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_common.errors import InputError
from bert_tf.checkpoint import CheckpointArrays
from model_formats.transformers_files.safetensors_files import open_tensors


def split(
    weights: Mapping[str, np.ndarray], source: CheckpointArrays, stem: str, rank: int
) -> tuple[dict[str, np.ndarray], float]:
    """Computes the arrays to store for a fine-tuned model.

    Args:
        weights: the model's weights, by Google's names.
        source: the base's weights.
        stem: the prefix of the encoder's variables, such as "bert/"; others are stored whole.
        rank: the rank of every matrix.

    Returns:
        Arrays by the names above, and the share of the squared difference that they lose.

    Raises:
        InputError: a weight's shape differs from the base's, or a weight is not finite.
    """
    arrays: dict[str, np.ndarray] = {}
    lost = changed = 0.0
    for name, value in weights.items():
        is_new = name not in source.shapes or not name.startswith(stem)
        if not np.isfinite(value).all() or not (is_new or np.isfinite(source.read(name)).all()):
            raise InputError(
                f"a difference needs finite weights. Received: NaN or infinity in {name}"
            )
        if is_new:
            arrays[f"{name}/new"] = value
            continue
        if tuple(source.shapes[name]) != value.shape:
            raise InputError(
                f"a difference needs weights of the same shapes. Received: {name} "
                f"{list(source.shapes[name])} for {list(value.shape)}"
            )
        difference = value.astype(np.float64) - source.read(name)
        if not difference.any():
            continue
        changed += float(np.sum(difference**2))
        if difference.ndim != 2 or min(difference.shape) < 2:
            arrays[f"{name}/whole"] = difference.astype(np.float32)
            continue
        left, values, right = np.linalg.svd(difference, full_matrices=False)
        lost += float(np.sum(values[rank:] ** 2))
        roots = np.sqrt(values[:rank])  # so that both factors have about the same size
        arrays[f"{name}/left"] = np.ascontiguousarray(left[:, :rank] * roots, np.float32)
        arrays[f"{name}/right"] = np.ascontiguousarray(roots[:, None] * right[:rank], np.float32)
    return arrays, lost / changed if changed else 0.0


def join(path: str, source: CheckpointArrays, stem: str) -> CheckpointArrays:
    """Adds a difference to its base's weights, for `load_arrays`.

    Args:
        path: the path of difference.safetensors.
        source: the base's weights.
        stem: the prefix of the encoder's variables.

    Raises:
        InputError: the file is damaged, or does not fit the base.
    """
    stored = open_tensors(path)
    shapes = {n: list(s) for n, s in source.shapes.items() if n.startswith(stem)}
    added: dict[str, list[str]] = {}
    for key in stored.shapes:
        name, _, part = key.rpartition("/")
        added.setdefault(name, []).append(part)
    for name, parts in added.items():
        _check_parts(path, name, sorted(parts), stored.shapes, shapes)
        if parts == ["new"]:
            shapes[name] = stored.shapes[f"{name}/new"]

    def read(name: str) -> Any:
        parts = added.get(name, [])
        if parts == ["new"]:
            return stored.read(f"{name}/new")
        value = source.read(name)
        if parts == ["whole"]:
            return value + stored.read(f"{name}/whole")
        if parts:
            return value + stored.read(f"{name}/left") @ stored.read(f"{name}/right")
        return value

    return CheckpointArrays(path, shapes, read, source.optional, source.ignored, source.config)


def _check_parts(path, name, parts, stored, shapes):
    """Raises an `InputError` if a weight's arrays do not fit the base."""
    shape, of_parts = shapes.get(name), [stored[f"{name}/{part}"] for part in parts]
    fits = False
    if parts == ["new"]:
        fits = shape is None
    elif parts == ["whole"]:
        fits = of_parts[0] == shape
    elif parts == ["left", "right"]:
        left, right = of_parts
        fits = [*left[:1], *right[1:]] == shape and left[1:] == right[:1]
    if not fits:
        shown = ", ".join(f"{part} {found}" for part, found in zip(parts, of_parts, strict=True))
        raise InputError(
            f"{path} must hold what fits its base. Received: {name or 'no name'} with {shown}"
        )
