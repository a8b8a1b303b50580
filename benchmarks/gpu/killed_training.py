"""Compares a training that was killed by SIGKILL with one that was left alone.

    python -m benchmarks.gpu.killed_training --report=killed.json
    python -m benchmarks.gpu.killed_training --config=run_scripts/flagfiles/bert_base.json

Makes records of the sample corpus, trains twice by run_pretraining, once killed after the first
checkpoint then resumed, evaluates both on the device and the first on the CPU, and prints how far
apart their weights and their losses are. On a CPU the two trainings are equal to the bit; a GPU may
add up gradients in another order from run to run.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import ROOT, argument_parser, print_table

LENGTH, PREDICTIONS = 128, 20
SECONDS = 0.2  # between two looks for the first checkpoint


def main():
    """Trains, kills, resumes, evaluates; prints a table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--text", default=str(ROOT / "sample_corpus" / "heldout.txt"))
    parser.add_argument("--tokenizer_dir", default=str(ROOT / "reference_model"))
    default = ROOT / "run_scripts" / "flagfiles" / "bert_mini.json"
    parser.add_argument("--config", default=str(default))
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--report", help="a JSON file to write the numbers to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        numbers = compare(arguments, Path(folder))
    print_table(("what", "value"), [(name, str(value)) for name, value in numbers.items()])
    if arguments.report:
        Path(arguments.report).write_text(json.dumps(numbers), encoding="utf-8")
    return int(not numbers["resumed at"])


def compare(arguments, folder):
    """The numbers of the table."""
    records = folder / "records.tfrecord"
    shape = (
        f"--tokenizer_dir={arguments.tokenizer_dir}",
        f"--max_seq_length={LENGTH}",
        f"--max_predictions_per_seq={PREDICTIONS}",
    )
    run(
        "create_pretraining_data.py", *shape,
        f"--input_file={arguments.text}", f"--output_file={records}", "--dupe_factor=2",
    )  # fmt: skip
    training = (
        "run_pretraining.py", *shape,
        f"--input_file={records}", f"--bert_config_file={arguments.config}", "--do_train",
        f"--train_batch_size={arguments.batch}", f"--num_train_steps={arguments.updates}",
        f"--num_warmup_steps={arguments.updates // 10}", f"--precision={arguments.precision}",
        f"--save_checkpoints_steps={arguments.updates // 4}", "--save_summary_steps=10",
    )  # fmt: skip
    whole, killed = folder / "whole", folder / "killed"
    start = time.perf_counter()
    run(*training, f"--output_dir={whole}")
    seconds = time.perf_counter() - start
    step = kill_after_checkpoint(command(*training, f"--output_dir={killed}"), killed)
    resumed = run(*training, f"--output_dir={killed}")
    found = re.search(r"resum\w+ \D*(\d+)", resumed, re.IGNORECASE)
    losses = {
        "loss, left alone": evaluate(training, whole, {}),
        "loss, killed": evaluate(training, killed, {}),
        "loss, left alone, on the CPU": evaluate(training, whole, {"CUDA_VISIBLE_DEVICES": "-1"}),
    }
    return {
        "seconds of the training left alone": round(seconds, 1),
        "killed after the checkpoint of": step,
        "resumed at": int(found[1]) if found else 0,
        **distances(whole, killed),
        **losses,
    }


def command(program, *flags):
    """The command line of one of the project's programs."""
    return [sys.executable, str(ROOT / program), *flags]


def run(*arguments, environment=None):
    """Runs a program, which must succeed; what it printed, both streams."""
    done = subprocess.run(
        command(*arguments),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"error: {' '.join(arguments)}\n{done.stdout[-3000:]}")
    return done.stdout


def kill_after_checkpoint(arguments, folder):
    """Kills the program once its folder holds a checkpoint; the checkpoint's step, or 0."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    steps = []
    while process.poll() is None and not steps:
        time.sleep(SECONDS)
        steps = checkpoint_steps(folder)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return max(steps, default=0)


def checkpoint_steps(folder):
    """The steps of the checkpoints that a folder holds."""
    names = (re.search(r"-(\d+)\.index$", path.name) for path in folder.glob("*.index"))
    return [int(found[1]) for found in names if found]


def distances(whole, killed):
    """How many arrays of the last checkpoints differ, and by how much of their norm."""
    import numpy as np
    import tensorflow as tf

    first, second = (
        tf.train.load_checkpoint(tf.train.latest_checkpoint(str(folder)))
        for folder in (whole, killed)
    )
    different, difference, norm = 0, 0.0, 0.0
    for name, dtype in first.get_variable_to_dtype_map().items():
        if not dtype.is_floating:
            continue
        a, b = first.get_tensor(name), second.get_tensor(name)
        different += not np.array_equal(a, b)
        difference += float(np.sum((a.astype(np.float64) - b) ** 2))
        norm += float(np.sum(a.astype(np.float64) ** 2))
    return {
        "arrays that differ": different,
        "relative difference of all": f"{(difference / norm) ** 0.5:.1e}",
    }


def evaluate(training, folder, environment):
    """The loss of masked words on the records."""
    flags = [flag for flag in training if flag != "--do_train"]
    run(*flags, "--nodo_train", "--do_eval", f"--output_dir={folder}", environment=environment)
    text = (folder / "eval_results.txt").read_text(encoding="utf-8")
    return float(re.search(r"^masked_lm_loss = (\S+)$", text, re.MULTILINE)[1])


if __name__ == "__main__":
    sys.exit(main())
