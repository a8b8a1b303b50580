"""Checks this machine's devices and prints which of them work, how accurately and how fast.

    python -m run_scripts.tools.check_devices     # a minute or so; --quick: no speeds of BERT-base

One training step of a tiny BERT, on every device and with every strategy, with and without XLA, in
every precision, is compared with the same step on the CPU in float32 without XLA. Then matrix
products and training steps of BERT-base are timed. Everything runs in separate processes: if one
dies, as XLA does on a GPU that it cannot compile for, the rest runs in another.
"""

import argparse
import os
import platform
import re
import sys
from pathlib import Path

from bert_common.import_tensorflow import import_tensorflow
from bert_common.startup import interruptible
from run_scripts.tools.check_devices.processes import run_groups, worker_environments
from run_scripts.tools.check_devices.speeds import BASE_BATCHES, PRODUCT_SIZES

CHECK_HEADINGS = ("device or strategy", "XLA", "precision", "difference", "result")
SPEED_HEADINGS = ("device", "what", "XLA", "precision", "speed", "memory", "result")


def main(argv=None):
    """The program; returns the exit status: 0 if every check passes, otherwise 1."""
    parser = argparse.ArgumentParser(
        prog="python -m run_scripts.tools.check_devices",
        description="Checks this machine's devices for correctness and speed.",
    )
    parser.add_argument("--quick", action="store_true", help="do not time BERT-base")
    arguments = parser.parse_args(argv)
    gpus = describe_machine()
    checked = run_checks(check_tasks(gpus), gpus)
    print(
        "\nOne training step, compared with the CPU's in float32 without XLA (mirrored: "
        f"{'all GPUs' if gpus else 'two logical CPUs'}; multi_worker: two processes with "
        f"{'a GPU' if gpus > 1 else 'the CPU'} each):\n"
    )
    print_table(CHECK_HEADINGS, map(check_row, checked))
    measured = run_speeds(gpus, checked, arguments.quick)
    print("\nSpeeds:\n")
    print_table(SPEED_HEADINGS, map(speed_row, measured))
    if gpus:
        print("\nfloat32 on GPUs: TF32, TensorFlow's default, is off where compared.")
    wrong = sum(answer["result"] != "ok" for _, answer in checked + measured)
    total = len(checked + measured)
    print(f"\n{wrong} of {total} checks failed." if wrong else f"\nAll {total} checks passed.")
    return 1 if wrong else 0


def describe_machine():
    """Prints versions and devices; returns the number of GPUs that TensorFlow sees."""
    tf = import_tensorflow()
    import keras

    from bert_tf.training.mixed_precision import BFLOAT16_FLAGS

    build = tf.sysconfig.get_build_info()
    names = {"CUDA": "cuda_version", "cuDNN": "cudnn_version"}
    built = ", ".join(f"{name} {build[key]}" for name, key in names.items() if key in build)
    print(
        f"Python {platform.python_version()}, TensorFlow {tf.__version__} "
        f"(built for {built or 'CPUs only'}), Keras {keras.__version__}"
    )
    name, flags = cpu_info()
    bfloat16 = ", ".join(flag for flag in BFLOAT16_FLAGS if flag in flags) or "none"
    print(f"CPU: {name}, {os.cpu_count()} threads; instructions for bfloat16: {bfloat16}")
    gpus = tf.config.list_physical_devices("GPU")
    for i, gpu in enumerate(gpus):
        details = tf.config.experimental.get_device_details(gpu)
        capability = ".".join(map(str, details.get("compute_capability", "?")))
        print(f"GPU:{i}: {details.get('device_name', '?')}, compute capability {capability}")
    if not gpus:
        print("GPU: none that TensorFlow sees")
    sys.stdout.flush()
    return len(gpus)


def cpu_info():
    """The name of the CPU and its instructions, as Linux lists them: a string, a set."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        text = ""
    name = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)", text, re.MULTILINE)
    fallback = platform.processor() or platform.machine()
    return name[1] if name else fallback, set(flags[1].split()) if flags else set()


def precisions(gpus):
    """The precisions to check; float16 only on GPUs."""
    return ("float32", "bfloat16", "float16") if gpus else ("float32", "bfloat16")


def devices(gpus):
    """The names of the devices to check."""
    return [f"GPU:{i}" for i in range(gpus)] or ["CPU:0"]


def check_tasks(gpus):
    """Lists the checks of a machine as dicts, those with several workers last."""
    where = [("one_device", device) for device in devices(gpus)]
    where += [("mirrored", None), ("multi_worker", None)]
    return [
        {"kind": "check", "strategy": strategy, "device": device, "xla": xla, "precision": name}
        for strategy, device in where
        for xla in (False, True)
        for name in precisions(gpus)
    ]


def run_checks(tasks, gpus):
    """Runs the checks from `check_tasks`.

    Returns:
        A list of (task, answer); `run_group` describes answers.
    """
    several = [task for task in tasks if task["strategy"] == "multi_worker"]
    alone = [task for task in tasks if task["strategy"] != "multi_worker"]
    return run_groups(
        [(alone, lambda: [{}]), (several, lambda: worker_environments(gpus))], "checks"
    )


def run_speeds(gpus, checked, quick):
    """Times matrix products on every device, and BERT-base on the first.

    Args:
        gpus: the number of GPUs.
        checked: the results of `run_checks`; XLA is not used where it failed.
        quick: whether to leave out BERT-base.

    Returns:
        As `run_checks`.
    """
    products = [
        {"kind": "product", "strategy": "one_device", "device": device, "precision": name}
        for device in devices(gpus)
        for name in precisions(gpus)
    ]
    measured = run_groups([(products, lambda: [{}])], "matrix products")
    if quick:
        return measured
    device = devices(gpus)[0]
    speeds = {t["precision"]: a.get("speed", 0) for t, a in measured if t["device"] == device}
    names = list(dict.fromkeys(["float32", max(speeds, key=speeds.get)]))
    for name in names:
        works = all(
            answer["result"] == "ok"
            for task, answer in checked
            if task["device"] == device and task["xla"] and task["precision"] == name
        )
        task = {"kind": "base", "strategy": "one_device", "device": device, "precision": name}
        # In a separate process, as its memory is measured as that of the process.
        group = [{**task, "xla": "auto" if works else "off"}], lambda: [{}]
        measured += run_groups([group], f"BERT-base in {name}")
    return measured


def check_row(pair):
    """A row of the first table from (task, answer)."""
    task, answer = pair
    difference = f"{answer['difference']:.1e}" if "difference" in answer else ""
    where = task["device"] or task["strategy"]
    return where, "on" if task["xla"] else "off", task["precision"], difference, answer["result"]


def speed_row(pair):
    """A row of the second table from (task, answer)."""
    task, answer = pair
    kind = task["device"][:3]
    if task["kind"] == "product":
        what = f"matrix product, {PRODUCT_SIZES[kind]} x {PRODUCT_SIZES[kind]}"
        speed = f"{answer['speed'] / 1e12:.3g} TFLOP/s" if "speed" in answer else ""
        return task["device"], what, "", task["precision"], speed, "", answer["result"]
    batch, length, _ = BASE_BATCHES[kind]
    speed = memory = xla = ""
    if "steps_per_second" in answer:
        steps = answer["steps_per_second"]
        speed = f"{steps:.3g} steps/s, {steps * batch:.3g} examples/s"
        memory = f"{answer['memory'] / 2**30:.1f} GiB" if answer["memory"] else ""
        xla = answer["xla"]
    what = f"BERT-base, {batch} x {length}"
    return task["device"], what, xla, task["precision"], speed, memory, answer["result"]


def print_table(headings, rows):
    """Prints rows of strings in columns."""
    rows = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip(), flush=True)


if __name__ == "__main__":
    with interruptible():
        status = main()
    sys.exit(status)
