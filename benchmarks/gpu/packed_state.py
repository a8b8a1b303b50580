"""Packs a training's checkpoint into small files, with four bytes per weight in total.

Each file has at most `PART_BYTES`. Together they are a zip archive of the newest checkpoint's
arrays, each packed by `pack_array`, and the small files of the training's folder.
"""

import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np

PART_BYTES = 15_000_000
SMALL_BYTES = 1_000_000  # smaller files of the training's folder are packed unchanged
MEAN, SQUARE = "/adam_m", "/adam_v"
SQUARE_DOUBLINGS = 48  # between the smallest kept second moment of a tensor and its largest


def pack(model, folder):
    """Writes the newest checkpoint and the small files of a training's folder as part files."""
    import tensorflow as tf

    newest = tf.train.latest_checkpoint(str(model))
    if not newest:
        sys.exit(f"error: {model} must hold a checkpoint. Received: none")
    reader = tf.train.load_checkpoint(newest)
    small = [
        path for path in model.iterdir()
        if path.is_file() and path.stat().st_size < SMALL_BYTES
        and not path.name.startswith((Path(newest).name, "events.", "checkpoint"))
    ]  # fmt: skip
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("checkpoint.json", json.dumps({"name": Path(newest).name}))
        for path in small:
            archive.write(path, f"files/{path.name}")
        for name in reader.get_variable_to_shape_map():
            packed = io.BytesIO()
            np.savez(packed, **pack_array(name, np.asarray(reader.get_tensor(name))))
            archive.writestr(f"arrays/{name}", packed.getvalue())
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("state_*.bin"):
        old.unlink()
    data = buffer.getvalue()
    for number, start in enumerate(range(0, len(data), PART_BYTES)):
        (folder / f"state_{number}.bin").write_bytes(data[start : start + PART_BYTES])
    print(f"{newest}: {len(data) / 1e6:.1f} MB in {folder}")


def unpack(folder, model):
    """Restores the checkpoint and the small files that `pack` packed; returns the exit status."""
    from bert_tf.checkpoint import write_arrays

    parts = sorted(folder.glob("state_*.bin"), key=lambda path: int(path.stem.split("_")[1]))
    if not parts:
        sys.exit(f"error: {folder} must hold state_0.bin. Received: none")
    archive = zipfile.ZipFile(io.BytesIO(b"".join(part.read_bytes() for part in parts)))
    model.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for member in archive.namelist():
        kind, _, name = member.partition("/")
        if kind == "files":
            (model / name).write_bytes(archive.read(member))
        elif kind == "arrays":
            with np.load(io.BytesIO(archive.read(member))) as packed:
                arrays[name] = unpack_array(name, packed)
    name = json.loads(archive.read("checkpoint.json"))["name"]
    write_arrays(str(model / name), arrays)
    return 0


def pack_array(name, array):
    """Packs an array of a checkpoint as a dict of smaller arrays.

    First moments are rounded to multiples of 1/127 of their row's largest, and second moments to
    one of 255 powers of two, evenly spaced down from their tensor's largest. Weights are float16.
    """
    if array.dtype != np.float32 or array.size < 256:
        return {"as_is": array}
    if name.endswith(MEAN):
        largest = np.max(np.abs(array), axis=-1, keepdims=True)
        scale = np.where(largest > 0, largest, 1).astype(np.float32)
        return {"mean": np.round(array / scale * 127).astype(np.int8), "scale": scale}
    if name.endswith(SQUARE):
        largest = np.max(array) or np.float32(1)
        with np.errstate(divide="ignore"):
            doublings = np.log2(array / largest) / SQUARE_DOUBLINGS  # 0 to -1, -inf for 0
        code = np.round(np.clip(1 + doublings, 0, 1) * 254) + 1
        return {"square": np.where(array > 0, code, 0).astype(np.uint8), "scale": largest}
    return {"half": array.astype(np.float16)}


def unpack_array(name, packed):
    """Restores the array of this name that `pack_array` packed."""
    if "as_is" in packed:
        return packed["as_is"]
    if name.endswith(MEAN):
        return packed["mean"].astype(np.float32) / 127 * packed["scale"]
    if name.endswith(SQUARE):
        code = packed["square"].astype(np.float32)
        value = packed["scale"] * 2 ** (SQUARE_DOUBLINGS * ((code - 1) / 254 - 1))
        return np.where(code > 0, value, 0).astype(np.float32)
    return packed["half"].astype(np.float32)
