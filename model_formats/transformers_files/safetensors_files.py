"""Reads safetensors files as float32 arrays by name; writes one."""

import contextlib
import dataclasses
import glob
import json
import os
import shlex

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json

WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"

# The suffixes of files that torch wrote with pickle.
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")

# The supported types, by safetensors' names; float32 can represent all their values.
DTYPES = ("F32", "F16", "BF16")

_CONVERSION = (
    "import glob, torch; from safetensors.torch import save_file; "
    "save_file({{k: v.contiguous().clone() for f in glob.glob({}) "
    'for k, v in torch.load(f, weights_only=True).items()}}, {}, {{"format": "pt"}})'
)


@dataclasses.dataclass(frozen=True)
class StoredTensors:
    """The tensors of one safetensors file, or of all shards of one model."""

    source: str  # the file, or the index of the shards
    shapes: dict[str, list[int]]  # name -> the tensor's shape
    files: dict[str, str]  # name -> the file that holds it

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor, of a type in `DTYPES`, as a float32 array."""
        path = self.files[name]
        with _one_line_errors(path), safe_open(path, framework="np") as file:
            dtype = file.get_slice(name).get_dtype()
            if dtype not in DTYPES:
                raise InputError(
                    f"{path}: {name} must be of type {', '.join(DTYPES)}. Received: {dtype}"
                )
            return np.asarray(file.get_tensor(name), np.float32)


def save_file(
    arrays: dict[str, np.ndarray], path: str, metadata: dict[str, str] | None = None
) -> None:
    """Writes arrays with a new file's usual permissions; the library's are for the owner only."""
    with atomic_write(path) as file:
        file.write(safetensors.numpy.save(arrays, metadata))


def find_safetensors(folder: str) -> str | None:
    """Returns the safetensors file or the index of shards in a folder, or None."""
    paths = (os.path.join(folder, name) for name in (WEIGHTS_FILE, INDEX_FILE))
    return next(filter(os.path.isfile, paths), None)


def refuse_pickles(path: str) -> None:
    """Raises an `InputError` for a pickle of torch, or a folder whose only weights are such files.

    The message has the command that converts the weights.
    """
    (folder, pattern), files = os.path.split(path), glob.escape(path)
    if os.path.isdir(path):
        folder, pattern = path, "pytorch_model*.bin"
        files = os.path.join(glob.escape(path), pattern)
        names = os.listdir(path) if find_safetensors(path) is None else ()
        if not any(name.startswith("pytorch_model") and name.endswith(".bin") for name in names):
            return
    elif not (path.endswith(PICKLES) and os.path.isfile(path)):
        return
    result = os.path.join(folder, WEIGHTS_FILE)
    given = (json.dumps(text, ensure_ascii=False) for text in (files, result))  # also of Python
    raise InputError(
        "weights must be in safetensors files, as reading a pickle can run any code. Received: "
        f"{os.path.join(folder, pattern)}; this converts it, where torch and safetensors are "
        f"installed: python -c {shlex.quote(_CONVERSION.format(*given))}"
    )


def open_tensors(path: str) -> StoredTensors:
    """Reads the names and shapes, but no array, of a safetensors file or an index's shards."""
    if not path.endswith(".json"):
        shapes = _read_header(path)
        return StoredTensors(path, shapes, dict.fromkeys(shapes, path))
    shards = _read_index(path)
    shapes, files = {}, dict[str, str]()
    for shard, names in shards.items():
        stored = _read_header(shard)
        missing, others = sorted(names - stored.keys()), sorted(stored.keys() - names)
        if missing or others:
            raise InputError(
                f"{shard} must hold the tensors that {path} names. Received: "
                + "; ".join(
                    f"{word} {', '.join(found[:3])}{', ...' if len(found) > 3 else ''}"
                    for word, found in (("without", missing), ("with", others))
                    if found
                )
            )
        shapes |= stored
        files |= dict.fromkeys(stored, shard)
    return StoredTensors(path, shapes, files)


def _read_index(path):
    """Returns the shards in an index, a dict from their paths to sets of tensor names."""
    index = read_json(read_bytes(path), path)
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(isinstance(p, str) for p in places.values()):
        raise InputError(f"{path} must hold weight_map, from names to files. Received: no such map")
    shards: dict[str, set[str]] = {}
    for name, file in places.items():
        if file != os.path.basename(file) or file in ("", ".", "..") or "\0" in file:
            raise InputError(f"{path} must name files of its own folder. Received: {file!r}")
        shards.setdefault(os.path.join(os.path.dirname(path), file), set()).add(name)
    return shards


@contextlib.contextmanager
def _one_line_errors(path):
    """Turns any error while reading a file into an `InputError` of one line."""
    try:
        yield
        return
    except InputError:  # also a ValueError, but its message is already right
        raise
    except OSError as error:
        reason = error.strerror or str(error)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())
    raise InputError(f"{path} must be a whole safetensors file. Received: {reason}")


def _read_header(path):
    # The library maps the file, and checks the header's lengths against its size before reading.
    with _one_line_errors(path), safe_open(path, framework="np") as file:
        return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
