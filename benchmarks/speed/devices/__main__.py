"""Measures how fast this machine's devices train.

    python -m benchmarks.speed.devices --report=speeds.json
    python -m benchmarks.speed.devices --models=base,large

First run_scripts.tools.check_devices, which says whether the devices compute what they should;
--xla=off where only its checks with XLA fail. Measured are matrix products; BERT of the sizes
--models at the largest batch that fits, with its utilisation, memory, the parts of a step and the
seconds of a checkpoint; the same on more and more GPUs; the input pipeline. On a CPU models are
trained only if --models names them. Everything runs in separate processes. --report writes all of
it to one JSON file: for what could not be measured here, null with the reason.
"""

import sys

from benchmarks.common import argument_parser, one_of
from benchmarks.speed.devices import tables, tasks
from bert_tf.config import PRESETS
from run_scripts.tools.check_devices.machine import describe_machine, print_machine
from run_scripts.tools.check_devices.processes import run_groups
from run_scripts.tools.check_devices.report import finish, has_folder, section
from run_scripts.tools.check_devices.tables import print_table

GPU_MODELS = ("base", "large")

ON_CPU = "skipped on a CPU: --models=base trains BERT-base there too, for minutes"


def main(argv=None):
    """The program; returns the exit status: 0 if everything could be measured, otherwise 1."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--models",
        type=one_of(*PRESETS),
        help=f"sizes of BERT to train: {', '.join(PRESETS)} (default: base,large on GPUs)",
    )
    parser.add_argument("--xla", choices=("auto", "off"), default="auto")
    parser.add_argument("--report", help="a JSON file to write all results to")
    arguments = parser.parse_args(argv)
    if arguments.report and not has_folder(arguments.report):
        return 1
    machine = describe_machine()
    print_machine(machine)
    sys.stdout.flush()
    gpus = len(machine["gpus"])
    sections = run_speeds(gpus, chosen_models(arguments, gpus), arguments.xla, machine)
    return finish(machine, sections, arguments.report, "measurements")


def chosen_models(arguments, gpus):
    """The sizes to train, and why there are none, or None."""
    if arguments.models:
        return arguments.models, None
    return (GPU_MODELS, None) if gpus else ((), ON_CPU)


def run_speeds(gpus, models, xla, machine):
    """Measures and prints the speeds.

    Args:
        gpus: the number of GPUs.
        models: what `chosen_models` returned.
        xla: "auto" or "off".
        machine: what `describe_machine` returned.

    Returns:
        A dict of sections: "products", "models", "scaling", "pipeline".
    """
    products = run_groups([(tasks.product_tasks(gpus), lambda: [{}])], "matrix products")
    rows = map(tables.product_row, products)
    print_table("Matrix products:", tables.PRODUCT_HEADINGS, rows)
    if gpus:
        print("\nfloat32 on GPUs: TF32, TensorFlow's default, is off where compared.")
    sizes, reason = models
    if not sizes:
        print(f"\nTraining of models: {reason}.")
        empty = section(None, reason)
        return {
            "products": section(products), "models": empty, "scaling": empty, "pipeline": empty,
        }  # fmt: skip
    precision = tasks.fastest_precision(gpus, products)
    memory = gpu_memory(machine)
    # Each in a process of its own, as memory is measured for a process.
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
    """Runs each task in a process of its own: a list of (task, answer)."""
    pairs = []
    for task in listed:
        name = f"{title}: {tables.model_name(task)}"
        pairs += run_groups([([task], lambda: [{}])], name)
    return pairs


def run_scaling(gpus, trained):
    """Trains the first model that worked on several devices: a section."""
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
    print_table(title, tables.MODEL_HEADINGS, map(tables.model_row, both))
    title = "The parts of a step, each timed alone (idle: the rest of the step), and a checkpoint:"
    print_table(title, tables.PART_HEADINGS, map(tables.part_row, both))
    demands = {}
    for task, answer in both:
        if "rows_per_second" in answer:
            name = f"{tables.model_name(task)} on {answer['devices']}"
            demands.setdefault(task["length"], []).append((name, answer["rows_per_second"]))
    rows = (tables.pipeline_row(pair, demands) for pair in piped)
    title = "The input pipeline, packed rows with masks drawn while training:"
    print_table(title, tables.PIPELINE_HEADINGS, rows)


def gpu_memory(machine):
    """The memory of the first GPU in MiB, by nvidia-smi; None if it is not known."""
    listed = machine["nvidia_smi"]["gpus"]
    memory = listed[0]["memory_mib"] if listed and machine["gpus"] else None
    return float(memory) if memory else None


if __name__ == "__main__":
    sys.exit(main())
