"""Prints the tables of what a training step costs."""

import json
import os
import subprocess
import sys

import jax

from benchmarks.gpu_step.cards import target_config
from benchmarks.gpu_step.runtime import (
    compile_text,
    compile_without_device,
    compiled_memory,
    counted_flops,
    read_description,
    read_text,
)

RESULTS_FILE = "results.jsonl"
FLOAT32_BYTES = 4

TIME_HEADINGS = [
    "program", "by", "ms/step", "spread", "rows/s", "utilisation", "compiled GiB", "peak GiB"
]  # fmt: skip
SIZE_HEADINGS = [
    "program", "weights", "GFLOP a step", "as XLA counts", "gradients, slots GiB", "update GiB",
    "estimate GiB",
]  # fmt: skip


def program_folders(folder):
    """The folders of programs in a folder, or that folder itself."""
    if os.path.exists(os.path.join(folder, "program.json")):
        return [folder]
    inside = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    found = [path for path in inside if os.path.exists(os.path.join(path, "program.json"))]
    if not found:
        raise SystemExit(f"error: {folder} must hold programs that export wrote")
    return found


def run_all(folder, rounds, timeout):
    """Times every program in a folder, each in its own process; prints rows as they come.

    The numbers go to results.jsonl in the folder, a line for each; what is there already is not
    timed again.
    """
    print_rows([TIME_HEADINGS, ["---"] * len(TIME_HEADINGS)])
    known = {r["program"]: r for r in _read_results(folder) if "error" not in r}
    for path in program_folders(folder):
        name = os.path.basename(os.path.normpath(path))
        if name in known:
            print_rows([_time_row(known[name])])
            continue
        result = _in_process(path, rounds, timeout)
        if memory := result.get("compiled_memory"):
            planned = {name: sum(parts.values()) for name, parts in memory.items()}
            result["planned_bytes"] = max(with_slots(planned, read_description(path)).values())
        result = {"program": name, **result}
        with open(os.path.join(folder, RESULTS_FILE), "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        print_rows([_time_row(result)])


def _read_results(folder):
    """What earlier runs have written, a dict for each line."""
    path = os.path.join(folder, RESULTS_FILE)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _in_process(path, rounds, timeout):
    command = [sys.executable, "-m", "benchmarks.gpu_step", "time", path, f"--rounds={rounds}"]
    # Memory as it is needed, so that its peak is known.
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {timeout} seconds"}
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        about = [line for line in lines if "RESOURCE_EXHAUSTED" in line or "OutOfMemory" in line]
        return {"error": (about or lines)[-1][:300], "exit_status": done.returncode}
    return json.loads(done.stdout.splitlines()[-1])


def _time_row(result):
    if "error" in result:
        return [result["program"], "", result["error"], *[""] * 5]
    share = result["utilisation"]
    return [
        result["program"],
        result["runtime"],
        f"{result['ms']:.4g}",
        f"{result['spread']:.0%}",
        f"{result['rows_per_second']:.4g}",
        "peak unknown" if share is None else f"{share:.0%}",
        _gib(result.get("planned_bytes")),
        _gib(result["peak_bytes"]),
    ]


def print_sizes(folder, target):
    """Prints what every program in a folder costs, as far as that is known without running it.

    Args:
        folder: of programs.
        target: "h100", to compile for a card that this machine need not have, by JAX's plugin for
            CUDA; "here" for JAX's first device; "none" to compile nothing.
    """
    print_rows([SIZE_HEADINGS, ["---"] * len(SIZE_HEADINGS)])
    for path in program_folders(folder):
        description = read_description(path)
        texts = {name: read_text(path, name) for name in ("gradients", "update")}
        row = [
            os.path.basename(os.path.normpath(path)),
            f"{description['weights']:,}",
            f"{description['flops'] / 1e9:,.0f}",
            f"{counted_flops(texts['gradients']) / 1e9:,.0f}",
        ]
        planned = {name: _planned(text, target) for name, text in texts.items()}
        row += map(_gib, with_slots(planned, description).values())
        print_rows([[*row, _gib(description["estimated_bytes"])]])


def _planned(text, target):
    if target == "none":
        return None
    if target == "here":
        executable = compile_text(text, jax.devices()[0])
    else:
        executable = compile_without_device(text, target_config())
    return sum(compiled_memory(executable).values())


def with_slots(planned, description):
    """Bytes that are taken during each program: those it was planned with, and the others' arrays.

    During the gradients those are the optimizer's slots. The update takes all there is.

    Args:
        planned: {"gradients": bytes, "update": bytes}, or None for both.
        description: the content of program.json.
    """
    if planned["gradients"] is None:
        return planned
    slots = FLOAT32_BYTES * len(description["slots"]) * description["weights"]
    return {**planned, "gradients": planned["gradients"] + slots}


def _gib(count):
    return "" if count is None else f"{count / 2**30:.2f}"


def print_rows(rows):
    """Prints rows of a Markdown table."""
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
