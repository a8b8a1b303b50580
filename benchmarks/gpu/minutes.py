"""Trains for a given number of minutes, starting from the packed state of an earlier call.

    python -m benchmarks.gpu.minutes train OUT --minutes=8 --text='parts/*.gz' \\
        -- --flagfile=run_scripts/flagfiles/electra_small_pretrain.flags
    python -m benchmarks.gpu.minutes train OUT2 --minutes=8 --state=OUT --text='parts/*.gz' -- FLAGS
    python -m benchmarks.gpu.minutes unpack OUT MODEL_DIR      the folder of run_pretraining again

Makes records of the texts (only once, as --work_dir keeps them), and trains with run_pretraining
and the flags after --. When the minutes are over, SIGTERM makes the training save a checkpoint and
end. The checkpoint is packed into files OUT/state_N.bin of at most 15 MB each (`packed_state`).
"""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from benchmarks.common import command_of, flag, launch, position, positive
from benchmarks.gpu.packed_state import pack, unpack

STOP_SECONDS = 120  # the time that a training may take to save
FLAGS = {
    "command": position(choices=("train", "unpack")),
    "folder": position("where the packed state is written, or read by unpack"),
    "target": position("of unpack", "?"),
    "text": flag(None, "names or globs, comma-separated; plain or .gz"),
    "data_flags": flag("", "of create_pretraining_data"),
    "minutes": flag(8.0, type=positive(float)),
    "state": flag(None, "a folder that an earlier call has written"),
    "work_dir": flag(None, "records and checkpoints; a temporary folder without it"),
}


def main(arguments):
    """Trains or unpacks."""
    if arguments.command == "unpack":
        return unpack(Path(arguments.folder), Path(arguments.target))
    with tempfile.TemporaryDirectory() as temporary:
        return train(arguments, Path(arguments.work_dir or temporary))


def train(arguments, folder):
    """Makes the records, unpacks the state, trains, and packs the new state."""
    model, records = folder / "model", folder / "records"
    model.mkdir(parents=True, exist_ok=True)
    if arguments.state and not list(model.glob("*.index")):
        unpack(Path(arguments.state), model)
    if not (records / "done").exists():
        made = subprocess.call(command_of(
            "create_pretraining_data.py", *arguments.data_flags.split(),
            f"--input_file={arguments.text}", f"--output_file={records / 'text.tfrecord'}",
            f"--num_workers={os.cpu_count()}",
        ))  # fmt: skip
        if made:
            return made
        (records / "done").touch()
    process = subprocess.Popen(command_of(
        "run_pretraining.py", *arguments.flags, "--do_train",
        f"--input_file={records / 'text*.tfrecord'}", f"--output_dir={model}",
    ))  # fmt: skip
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


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, passed_on=True)
