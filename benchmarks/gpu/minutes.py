"""Trains for some minutes and packs what was learned into small files, from which it goes on later.

    python -m benchmarks.gpu.minutes train OUT --minutes=8 --text='parts/*.gz' \\
        -- --flagfile=run_scripts/flagfiles/electra_small_pretrain.flags
    python -m benchmarks.gpu.minutes train OUT2 --minutes=8 --state=OUT --text='parts/*.gz' -- FLAGS
    python -m benchmarks.gpu.minutes unpack OUT MODEL_DIR      the folder of run_pretraining again

Makes records of the texts on the spot (once: they are kept in --work_dir), trains by
run_pretraining with the flags after --, ends it with SIGTERM when the minutes are over, which saves
a checkpoint, and packs that into OUT/state_N.bin of at most 15 MB each: weights in half precision,
Adam's moments in eight bits (`pack_array`), four bytes a weight in all.
"""

import glob
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from benchmarks.common import ROOT, argument_parser, positive

PART_BYTES = 15_000_000
SMALL_BYTES = 1_000_000  # of a file of the training's folder that is packed as it is
MEAN, SQUARE = "/adam_m", "/adam_v"
SQUARE_DOUBLINGS = 48  # from a tensor's largest second moment down to the smallest that is kept
STOP_SECONDS = 120  # which a training may take to save


def main():
    """Trains or unpacks."""
    own, flags = split(sys.argv[1:])
    parser = argument_parser(__doc__)
    parser.add_argument("command", choices=("train", "unpack"))
    parser.add_argument("folder", help="where the packed state is written, or read by unpack")
    parser.add_argument("target", nargs="?", help="of unpack")
    parser.add_argument("--text", help="names or globs, comma-separated; plain or .gz")
    parser.add_argument("--data_flags", default="", help="of create_pretraining_data")
    parser.add_argument("--minutes", type=positive(float), default=8.0)
    parser.add_argument("--state", help="a folder that an earlier call has written")
    parser.add_argument("--work_dir", help="records and checkpoints; a temporary folder without it")
    arguments = parser.parse_args(own)
    if arguments.command == "unpack":
        return unpack(Path(arguments.folder), Path(arguments.target))
    with tempfile.TemporaryDirectory() as temporary:
        return train(arguments, flags, Path(arguments.work_dir or temporary))


def split(arguments):
    """The arguments before "--", and those after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def train(arguments, flags, folder):
    """Makes the records, goes on from the state, trains, packs."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    if arguments.state and not list(model.glob("*.index")):
        unpack(Path(arguments.state), model)
    records = folder / "records"
    if not (records / "done").exists():
        texts = [path for name in arguments.text.split(",") for path in sorted(glob.glob(name))]
        subprocess.run(
            [
                sys.executable, str(ROOT / "create_pretraining_data.py"),
                *arguments.data_flags.split(), f"--input_file={','.join(texts)}",
                f"--output_file={records / 'text.tfrecord'}",
                f"--num_workers={os.cpu_count()}",
            ],
            check=True,
        )  # fmt: skip
        (records / "done").touch()
    command = [
        sys.executable, str(ROOT / "run_pretraining.py"), *flags, "--do_train",
        f"--input_file={records / 'text*.tfrecord'}", f"--output_dir={model}",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        status = process.wait(60 * arguments.minutes)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        status = process.wait(STOP_SECONDS)
        if status == 128 + signal.SIGTERM or status == -signal.SIGTERM:
            status = 0
    if status == 0:
        pack(model, Path(arguments.folder))
    return status


def pack(model, folder):
    """Writes the newest checkpoint and the small files of a training's folder as parts."""
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
    """Writes the checkpoint and the small files that `pack` has packed; returns the exit status."""
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
    """A dict of smaller arrays for one of a checkpoint's.

    A first moment is kept in steps of 1/127 of its row's largest, a second moment as one of 255
    powers of two with equal distances from its tensor's largest one down, weights as float16.
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
    """The array that `pack_array` has packed under this name."""
    if "as_is" in packed:
        return packed["as_is"]
    if name.endswith(MEAN):
        return packed["mean"].astype(np.float32) / 127 * packed["scale"]
    if name.endswith(SQUARE):
        code = packed["square"].astype(np.float32)
        value = packed["scale"] * 2 ** (SQUARE_DOUBLINGS * ((code - 1) / 254 - 1))
        return np.where(code > 0, value, 0).astype(np.float32)
    return packed["half"].astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
