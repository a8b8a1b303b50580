"""Measures how fast this machine's devices train.

    python -m benchmarks.speed.devices --report=speeds.json
    python -m benchmarks.speed.devices --models=base,large

First run run_scripts.tools.check_devices, which checks that the devices compute correctly; use
--xla=off if only its checks with XLA fail. This measures matrix products; BERT of the sizes
--models at the largest batch that fits, with utilisation, memory, the parts of a step and the
seconds of a checkpoint; the same on more and more GPUs; and the input pipeline. On a CPU models are
trained only if --models is given. Everything runs in separate processes. --report writes all
results to one JSON file, with null and the reason for anything that could not be measured.
"""

import sys

from benchmarks.common import flag, launch, one_of
from benchmarks.speed.devices import tasks
from benchmarks.speed.devices.products import PRODUCT_SIZES
from bert_tf.config import PRESETS
from run_scripts.tools.check_devices.machine import describe_machine, print_machine
from run_scripts.tools.check_devices.processes import run_groups
from run_scripts.tools.check_devices.report import finish, make_folder, print_table, section

PRODUCT_HEADINGS = ("device", "what", "precision", "speed", "result")
MODEL_HEADINGS = (
    "model", "devices", "rows", "XLA", "precision", "steps/s", "rows/s", "utilisation",
    "memory (estimate)", "result",
)  # fmt: skip
PART_HEADINGS = (
    "model", "devices", "forward and backward", "reduction", "update", "idle", "step",
    "checkpoint: training waits", "written in",
)  # fmt: skip
PIPELINE_HEADINGS = (
    "rows of", "processes for masks", "input pipeline", "the models' need on all devices", "result",
)  # fmt: skip

GPU_MODELS = ("base", "large")
FLAGS = {
    "models": flag(
        None,
        f"sizes of BERT to train: {', '.join(PRESETS)} (default: base,large on GPUs)",
        type=one_of(*PRESETS),
    ),
    "xla": flag("auto", choices=("auto", "off")),
    "report": flag(None, "a JSON file to write all results to"),
}

ON_CPU = "skipped on a CPU: --models=base trains BERT-base there too, for minutes"


def main(arguments):
    """Runs the program; raises a MachineError unless everything could be measured."""
    if arguments.report:
        make_folder(arguments.report)
    machine = describe_machine()
    print_machine(machine)
    sys.stdout.flush()
    gpus = len(machine["gpus"])
    sizes = arguments.models or (GPU_MODELS if gpus else ())
    sections = run_speeds(gpus, sizes, arguments.xla, machine)
    finish(machine, sections, arguments.report, "measurements")


def run_speeds(gpus, sizes, xla, machine):
    """Measures and prints the speeds.

    Args:
        gpus: the number of GPUs.
        sizes: the sizes of BERT to train; empty on a CPU by default.
        xla: "auto" or "off".
        machine: the result of `describe_machine`.

    Returns:
        A dict of sections: "products", "models", "scaling", "pipeline".
    """
    products = run_groups([(tasks.product_tasks(gpus), lambda: [{}])], "matrix products")
    rows = map(product_row, products)
    print_table("Matrix products:", PRODUCT_HEADINGS, rows)
    if gpus:
        print("\nfloat32 on GPUs: TF32, TensorFlow's default, is off where compared.")
    if not sizes:
        print(f"\nTraining of models: {ON_CPU}.")
        empty = section(None, ON_CPU)
        return {
            "products": section(products), "models": empty, "scaling": empty, "pipeline": empty,
        }  # fmt: skip
    precision = tasks.fastest_precision(gpus, products)
    memory = gpu_memory(machine)
    # Each in a separate process, as memory is measured per process.
    trained = run_alone(tasks.model_tasks(gpus, sizes, precision, xla, memory), "models")
    scaled = run_scaling(gpus, trained)
    piped = run_groups([(tasks.pipeline_tasks(gpus), lambda: [{}])], "input pipeline")
    print_models(trained, scaled["results"] or [], piped)
    return {
        "products": section(products),
        "models": section(trained),
        "scaling": scaled,
        "pipeline": section(piped),
    }


def run_alone(listed, title):
    """Runs each task in a separate process; returns a list of (task, answer)."""
    pairs = []
    for task in listed:
        name = f"{title}: {model_name(task)}"
        pairs += run_groups([([task], lambda: [{}])], name)
    return pairs


def run_scaling(gpus, trained):
    """Trains the first model that worked on several devices; returns a section."""
    worked = [pair for pair in trained if "rows" in pair[1]]
    if not worked:
        return section(None, "no model could be trained")
    if gpus == 1:
        return section(None, "there is one GPU")
    task, answer = worked[0]
    return section(run_alone(tasks.scaling_tasks(gpus, task, answer["rows"]), "scaling"))


def print_models(trained, scaled, piped):
    """Prints the tables about models."""
    both = trained + scaled
    title = "Training, at the largest batch that fits on a GPU:"
    print_table(title, MODEL_HEADINGS, map(model_row, both))
    title = "The parts of a step, each timed alone (idle: the rest of the step), and a checkpoint:"
    print_table(title, PART_HEADINGS, map(part_row, both))
    demands = {}
    for task, answer in both:
        if "rows_per_second" in answer:
            name = f"{model_name(task)} on {answer['devices']}"
            demands.setdefault(task["length"], []).append((name, answer["rows_per_second"]))
    rows = (pipeline_row(pair, demands) for pair in piped)
    title = "The input pipeline, packed rows with masks drawn while training:"
    print_table(title, PIPELINE_HEADINGS, rows)


def product_row(pair):
    """Returns the table row of a matrix product, a pair (task, answer)."""
    task, answer = pair
    size = PRODUCT_SIZES[task["device"][:3]]
    speed = f"{answer['speed'] / 1e12:.3g} TFLOP/s" if "speed" in answer else ""
    what = f"matrix product, {size} x {size}"
    return task["device"], what, task["precision"], speed, answer["result"]


def model_row(pair):
    """Returns the table row of a model's training, a pair (task, answer)."""
    task, answer = pair
    name = model_name(task)
    if "rows" not in answer:
        return (name, "", "", "", task["precision"], "", "", "", "", answer["result"])
    used = answer["utilisation"]
    memory = f"{answer['memory'] / 2**30:.1f}" if answer["memory"] else "?"
    return (
        name,
        str(answer["devices"]),
        f"{answer['rows']} each",
        answer["xla"],
        task["precision"],
        f"{answer['steps_per_second']:.3g}",
        f"{answer['rows_per_second']:.4g}",
        "" if used is None else f"{used:.0%}",
        f"{memory} GiB ({answer['estimated_memory'] / 2**30:.1f})",
        answer["result"],
    )


def part_row(pair):
    """Returns the row of a step's parts and a checkpoint for (task, answer); None without them."""
    task, answer = pair
    if not answer.get("parts"):
        return None
    parts, checkpoint = answer["parts"], answer["checkpoint"]
    names = ("forward and backward", "reduction", "update", "idle", "step")
    return (
        model_name(task),
        str(answer["devices"]),
        *(f"{1000 * parts[name]:.3g} ms" for name in names),
        f"{checkpoint['copy']:.3g} s",
        f"{checkpoint['write']:.3g} s, {checkpoint['bytes'] / 1e9:.3g} GB",
    )


def pipeline_row(pair, demands):
    """Returns the table row of the input pipeline.

    Args:
        pair: a pair (task, answer).
        demands: length -> a list of (model, rows that it trains per second).
    """
    task, answer = pair
    speed = f"{answer['rows_per_second']:,.0f} rows/s" if "rows_per_second" in answer else ""
    needs = ", ".join(f"{name} {rows:,.0f}" for name, rows in demands.get(task["length"], ()))
    count = str(task["mask_processes"])
    return str(task["length"]), count, speed, needs or "not measured", answer["result"]


def model_name(task):
    """Returns a model's name in the tables, such as "BERT-base, 128"."""
    return f"BERT-{task['size']}, {task['length']}"


def gpu_memory(machine):
    """Returns the memory of the first GPU in MiB, by nvidia-smi; None if not known."""
    listed = machine["nvidia_smi"]["gpus"]
    memory = listed[0]["memory_mib"] if listed and machine["gpus"] else None
    return float(memory) if memory else None


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
