"""Writes arrays as model.safetensors, in several files where that is wanted.

Source of the names of several files, and of their index: huggingface_hub,
serialization/_torch.py.
"""

import errno
import os
from collections.abc import Mapping

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bert_common.atomic_write import write_json
from bert_common.progress import progress
from model_formats.transformers_files.safetensors_files import INDEX_FILE, WEIGHTS_FILE


def split_into_shards(
    arrays: Mapping[str, np.ndarray], largest: int | None
) -> list[dict[str, np.ndarray]]:
    """Divides a dict of arrays, in its order, into dicts of at most `largest` bytes.

    An array that alone is larger has a shard of its own. None: everything in one.
    """
    shards: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, array in arrays.items():
        if largest is not None and shards[-1] and size + array.nbytes > largest:
            shards.append({})
            size = 0
        shards[-1][name] = array
        size += array.nbytes
    return shards


def write_weights(
    directory: str, arrays: Mapping[str, np.ndarray], max_shard_size: int | None = None
) -> None:
    """Writes model.safetensors, or shards of it with an index, and reads every array back.

    `max_shard_size` are the most bytes of a file, more where one array is larger; None for one
    file. A file on disk that differs from the arrays in memory is an OSError.
    """
    shards = split_into_shards(arrays, max_shard_size)
    total = sum(array.nbytes for array in arrays.values())
    weight_map: dict[str, str] = {}
    with progress("writing and checking the weights", total, "B") as bar:
        for number, shard in enumerate(shards, start=1):
            name = WEIGHTS_FILE
            if len(shards) > 1:
                name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            _write_file(os.path.join(directory, name), shard)
            weight_map |= dict.fromkeys(shard, name)
            bar.update(sum(array.nbytes for array in shard.values()))
    if len(shards) > 1:
        parameters = sum(array.size for array in arrays.values())
        metadata = {"total_parameters": parameters, "total_size": total}
        index = {"metadata": metadata, "weight_map": dict(sorted(weight_map.items()))}
        write_json(os.path.join(directory, INDEX_FILE), index)


def _write_file(path, arrays):
    try:
        # Without this metadata transformers refuses a file.
        save_file(arrays, path, metadata={"format": "pt"})
        with safe_open(path, framework="numpy") as file:
            for name, array in arrays.items():
                if not np.array_equal(file.get_tensor(name), array, equal_nan=True):
                    raise SafetensorError(f"{name} on disk differs from its value in memory")
    except SafetensorError as error:
        raise OSError(errno.EIO, f"cannot write the weights ({error})", path) from None
