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
import sys
import tempfile
from pathlib import Path

from benchmarks.common import ROOT, argument_parser, positive
from benchmarks.gpu.packed_state import pack, unpack
from bert_common.errors import InputError

STOP_SECONDS = 120  # the time that a training may take to save


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
    try:
        if arguments.command == "unpack":
            if not arguments.target:
                raise InputError("unpack must be given two folders. Received: one")
            return unpack(Path(arguments.folder), Path(arguments.target))
        with tempfile.TemporaryDirectory() as temporary:
            return train(arguments, flags, Path(arguments.work_dir or temporary))
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


def split(arguments):
    """Splits arguments at "--" into those before it and those after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def train(arguments, flags, folder):
    """Makes the records, unpacks the state, trains, and packs the new state."""
    model, records = folder / "model", folder / "records"
    if not arguments.text and not (records / "done").exists():
        raise InputError("--text must be given until --work_dir has the records. Received: none")
    model.mkdir(parents=True, exist_ok=True)
    if arguments.state and not list(model.glob("*.index")):
        unpack(Path(arguments.state), model)
    if not (records / "done").exists():
        made = subprocess.run(
            [
                sys.executable, str(ROOT / "create_pretraining_data.py"),
                *arguments.data_flags.split(), f"--input_file={arguments.text}",
                f"--output_file={records / 'text.tfrecord'}",
                f"--num_workers={os.cpu_count()}",
            ],
        )  # fmt: skip
        if made.returncode:
            return made.returncode
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


if __name__ == "__main__":
    sys.exit(main())
