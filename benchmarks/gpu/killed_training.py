"""Compares a training that resumes after SIGKILL with an undisturbed one.

    python -m benchmarks.gpu.killed_training --report=killed.json
    python -m benchmarks.gpu.killed_training --config=run_scripts/flagfiles/bert_base.json

Makes records of the sample corpus, and trains twice with run_pretraining, once killed after the
first checkpoint and resumed. Evaluates both trainings on the device and the undisturbed one also on
the CPU, and prints the differences of their weights and losses. On a CPU the two trainings are
bit-equal; a GPU may sum gradients in a different order in each run.
"""

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.common import ROOT, command_of, flag, launch, print_table, run
from bert_common.atomic_write import write_json
from bert_tf.checkpoint_files import list_checkpoints

LENGTH, PREDICTIONS = 128, 20
SECONDS = 0.2  # between two checks for the first checkpoint
FLAGS = {
    "text": str(ROOT / "sample_corpus" / "heldout.txt"),
    "tokenizer_dir": str(ROOT / "reference_model"),
    "config": str(ROOT / "run_scripts" / "flagfiles" / "bert_mini.json"),
    "precision": "bfloat16",
    "updates": 200,
    "batch": 32,
    "report": flag(None, "a JSON file to write the numbers to"),
}


def main(arguments):
    """Trains, kills, resumes and evaluates, then prints the table; returns 1 if not resumed."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = compare(arguments, Path(folder))
    print_table(("what", "value"), [(name, str(value)) for name, value in numbers.items()])
    if arguments.report:
        write_json(arguments.report, numbers)
    return int(not numbers["resumed at"])


def compare(arguments, folder):
    """Returns the numbers of the table."""
    records, updates = folder / "records.tfrecord", arguments.updates
    shape = {
        "tokenizer_dir": arguments.tokenizer_dir,
        "max_seq_length": LENGTH,
        "max_predictions_per_seq": PREDICTIONS,
    }
    run(
        "create_pretraining_data.py", input_file=arguments.text, output_file=records,
        dupe_factor=2, **shape,
    )  # fmt: skip
    training = {
        **shape, "input_file": records, "bert_config_file": arguments.config,
        "train_batch_size": arguments.batch, "precision": arguments.precision,
        "num_train_steps": updates, "num_warmup_steps": updates // 10,
        "save_checkpoints_steps": updates // 4, "save_summary_steps": 10,
    }  # fmt: skip
    program, whole, killed = "run_pretraining.py", folder / "whole", folder / "killed"
    start = time.perf_counter()
    run(program, do_train=True, output_dir=whole, **training)
    seconds = time.perf_counter() - start
    command = command_of(program, do_train=True, output_dir=killed, **training)
    step = kill_after_checkpoint(command, killed)
    resumed = run(program, do_train=True, output_dir=killed, **training)
    found = re.search(r"resuming from \S*ckpt-(\d+)", resumed)
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


def kill_after_checkpoint(arguments, folder):
    """Kills a program once its folder holds a checkpoint; returns the checkpoint's step, or 0."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    steps = []
    while process.poll() is None and not steps:
        time.sleep(SECONDS)
        steps = list_checkpoints(folder)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return max(steps, default=0)


def distances(whole, killed):
    """Returns the number of different arrays in the last checkpoints, and the relative distance."""
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
    """Returns the masked-word loss on the records."""
    run(
        "run_pretraining.py", environment=environment, nodo_train=True, do_eval=True,
        output_dir=folder, **training,
    )  # fmt: skip
    text = (folder / "eval_results.txt").read_text(encoding="utf-8")
    return float(re.search(r"^masked_lm_loss = (\S+)$", text, re.MULTILINE)[1])


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
