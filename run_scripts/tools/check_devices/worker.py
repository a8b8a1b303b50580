"""Runs the tasks of a file in a separate process, which one of them may kill.

python -m run_scripts.tools.check_devices.worker FILE
"""

import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bert_common.import_tensorflow import CLUSTERING_FLAGS, add_flags
from run_scripts.tools.check_devices.steps import strategy_of

# The suffix of the file beside the tasks that has the answers, a line of JSON each.
ANSWERS = ".answers"

# The maximum length of an error message.
SHOWN_CHARACTERS = 200

# Makes a process split the first GPU into two logical GPUs with this much memory each, which is
# enough for the tiny models of the checks.
SPLIT_VARIABLE = "CHECK_DEVICES_SPLIT"
SPLIT_MEGABYTES = 1024

# Beginnings of lines that TensorFlow prints before the actual error.
PREAMBLE = ("Graph execution error", "Detected at node", "File ", "<stack traces", "Exception enc")


def work(path: Path) -> int:
    """Runs the tasks of a file and writes the answers beside it.

    The exit status is 1 if one of several workers failed, as the others' sums would wait for it.
    """
    import tensorflow as tf

    add_flags("TF_XLA_FLAGS", CLUSTERING_FLAGS)  # before devices are listed, which reads them
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and os.environ.get(SPLIT_VARIABLE):
        logical = tf.config.LogicalDeviceConfiguration(memory_limit=SPLIT_MEGABYTES)
        tf.config.set_logical_device_configuration(gpus[0], [logical] * 2)
    if not gpus:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
        )
    with open(path.with_suffix(ANSWERS), "w", encoding="utf-8") as file:
        for task in json.loads(path.read_text(encoding="utf-8")):
            answer = answer_to(task)
            print(json.dumps(answer), file=file, flush=True)
            if "TF_CONFIG" in os.environ and answer["result"].startswith("failed"):
                return 1
    if "TF_CONFIG" in os.environ:
        from bert_tf.training.distribution import barrier

        barrier(strategy_of(task["strategy"]))
    return 0


def answer_to(task: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a task; returns an answer, also for an error, as `processes.run_group` describes it."""
    try:
        return function_of(task)(task)
    except Exception as error:  # of any kind, as the next task may work
        return {"result": f"failed: {first_line(error)}"}


def function_of(task: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Returns the function that turns a task into an answer, given by "kind" as MODULE:NAME."""
    module, name = task["kind"].split(":")
    return getattr(importlib.import_module(module), name)


def first_line(error: Exception) -> str:
    """Summarizes an exception in one line, without the useless first lines of TensorFlow's."""
    text = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(PREAMBLE)]
    # A line from XLA, or the error below the code that was being traced.
    relevant = [line for line in lines if "XLA" in line or re.match(r"\w+Error: ", line)]
    line = re.sub(r"\[_XlaMustCompile[^]]*\]", "", [*relevant, *lines, ""][0])
    return f"{type(error).__name__}: {line}"[:SHOWN_CHARACTERS]


if __name__ == "__main__":
    sys.exit(work(Path(sys.argv[1])))
