"""A fine-tuned model as what differs from the model that it began as: matrices of low rank.

The folder holds, beside the records of task and training:

    difference.json           version, the folder of the base as a path from here, the digest of
                              the base's weights, the rank
    difference.safetensors    of each weight by Google's name what is added to the base's:
                              NAME/left [rows, r] and NAME/right [r, columns] of a matrix,
                              whose product it is; NAME/whole of any other array. A weight
                              that the base lacks, as of the task's head, is NAME/new.

Configuration and tokenizer are the base's. A weight that did not change is not stored. The product
of rank r that is nearest to a matrix, in the sum of squares, is its singular value decomposition
cut after r values (Eckart and Young, 1936); as an addition to frozen weights it is LoRA's
(arXiv:2106.09685), found after the training and not by it.

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
    """What is stored of a model.

    Args:
        weights: the model's, by Google's names.
        source: the base's.
        stem: the prefix of the encoder's variables, such as "bert/"; the others are kept whole.
        rank: of every matrix.

    Returns:
        Arrays by the names above, and the share of the squared difference that is not among them.

    Raises:
        InputError: a weight has another shape in the base, or is not finite.
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
    """The weights that a difference and its base make, for `load_arrays`.

    Args:
        path: difference.safetensors.
        source: the base's weights.
        stem: how the names of its encoder's begin.

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
    """Refuses arrays that add up to none of the base's weights."""
    fits = {
        ("new",): name not in shapes,
        ("whole",): stored.get(f"{name}/whole") == shapes.get(name),
        ("left", "right"): name in shapes
        and [*stored.get(f"{name}/left", [])[:1], *stored.get(f"{name}/right", [])[1:]]
        == shapes[name]
        and stored[f"{name}/left"][1:] == stored[f"{name}/right"][:1],
    }.get(tuple(parts), False)
    if not fits:
        shown = ", ".join(f"{part} {stored[f'{name}/{part}']}" for part in parts)
        raise InputError(
            f"{path} must hold what fits its base. Received: {name or 'no name'} with {shown}"
        )
