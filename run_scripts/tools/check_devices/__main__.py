"""Checks this machine's devices and prints which of them work, how accurately and how fast.

    python -m run_scripts.tools.check_devices --report=report.json
    python -m run_scripts.tools.check_devices --quick     # a minute or so: no training of models

One training step of a tiny BERT, on every device and with every strategy, with and without XLA, in
every precision, and with each way to train of `steps.OPTIONS`, is compared with the same step on
the CPU in float32 without XLA. Replicas must have the same weights afterwards, to the bit. Then
come the speeds: matrix products; BERT-base and -large at the largest batch that fits, with their
utilisation, memory, the parts of a step and the seconds of a checkpoint; the same on more and more
GPUs; the input pipeline. On a CPU models are trained only if --models names them.

Everything runs in separate processes: if one dies, as XLA does on a GPU that it cannot compile for,
the rest runs in another. --report writes all of it to one JSON file: versions, driver, links,
answers, and, for what could not be measured here, null with the reason. It holds no names
of users, hosts or folders, unless an error's message does.
"""

import argparse
import datetime
import os
import sys

from bert_common import VERSION
from bert_common.atomic_write import write_json
from bert_common.startup import interruptible
from bert_tf.config import PRESETS
from run_scripts.tools.check_devices import tables, tasks
from run_scripts.tools.check_devices.machine import describe_machine, print_machine
from run_scripts.tools.check_devices.processes import run_groups

GPU_MODELS = ("base", "large")

ON_CPU = "skipped on a CPU: --models=base trains BERT-base there too, for minutes"
QUICK = "skipped by --quick"
NO_GPU = "TensorFlow sees no GPU"


def main(argv=None):
    """The console script; returns the exit status: 0 if every check passes, otherwise 1."""
    with interruptible():
        return check(parse(argv))


def check(arguments):
    """Runs all checks that the arguments ask for; returns the exit status."""
    if arguments.report:
        folder = os.path.dirname(arguments.report) or "."
        if not os.path.isdir(folder):  # before minutes are spent
            message = f"--report must name a file in a folder. Received: no folder {folder}"
            print(f"error: {message}", file=sys.stderr)
            return 1
    machine = describe_machine()
    print_machine(machine)
    sys.stdout.flush()
    gpus = len(machine["gpus"])
    sections = {"checks": run_checks(gpus)}
    sections |= run_speeds(gpus, sections["checks"], chosen_models(arguments, gpus), machine)
    pairs = [pair for section in sections.values() for pair in section["results"] or ()]
    wrong = sum(answer["result"] != "ok" for _, answer in pairs)
    total = len(pairs)
    if arguments.report:
        try:
            write_json(arguments.report, make_report(machine, sections))
        except OSError as error:
            print(f"error: {error.strerror}: {error.filename}", file=sys.stderr)
            return 1
        print(f"\nwritten: {arguments.report}")
    print(f"\n{wrong} of {total} checks failed." if wrong else f"\nAll {total} checks passed.")
    return 1 if wrong else 0


def parse(argv):
    """The command line."""
    installed = not sys.argv[0].endswith(".py")  # a console script
    parser = argparse.ArgumentParser(
        prog=None if installed else "python -m run_scripts.tools.check_devices",
        description="Checks this machine's devices for correctness and speed.",
    )
    parser.add_argument("--quick", action="store_true", help="train no models, only check")
    parser.add_argument(
        "--models",
        type=lambda text: tuple(filter(None, text.split(","))),
        help="sizes of BERT to train, comma-separated: " + ", ".join(PRESETS)
        + " (without it: base,large on GPUs, none on a CPU)",
    )  # fmt: skip
    parser.add_argument("--report", help="a JSON file to write all results to")
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.models or ()) - set(PRESETS))
    if unknown:
        parser.error(f"--models must be of {', '.join(PRESETS)}. Received: {', '.join(unknown)}")
    return arguments


def chosen_models(arguments, gpus):
    """The sizes to train, and why there are none, or None."""
    if arguments.quick:
        return (), QUICK
    if arguments.models is not None:
        return arguments.models, None if arguments.models else "--models is empty"
    return (GPU_MODELS, None) if gpus else ((), ON_CPU)


def section(results, reason=None):
    """A part of the report: (task, answer) pairs, or None and why there are none."""
    return {"results": results or None, "reason": None if results else reason}


def run_checks(gpus):
    """Compares steps and prints them."""
    listed = [*tasks.check_tasks(gpus), *tasks.option_tasks(gpus)]
    checked = run_groups(tasks.check_groups(listed, gpus), "checks")
    title = (
        "Training steps, compared with the CPU's in float32 without XLA (mirrored: "
        f"{'all GPUs' if gpus else 'two logical CPUs'}; split: two logical GPUs on one; "
        f"multi_worker: two processes with {'a GPU' if gpus > 1 else 'the CPU'} each):"
    )
    tables.print_table(title, tables.CHECK_HEADINGS, map(tables.check_row, checked))
    return section(checked)


def run_speeds(gpus, checks, models, machine):
    """Measures and prints the speeds.

    Args:
        gpus: the number of GPUs.
        checks: the section of `run_checks`; XLA is not used where it failed.
        models: what `chosen_models` returned.
        machine: what `describe_machine` returned.

    Returns:
        A dict of sections: "products", "models", "scaling", "pipeline".
    """
    products = run_groups([(tasks.product_tasks(gpus), lambda: [{}])], "matrix products")
    rows = map(tables.product_row, products)
    tables.print_table("Matrix products:", tables.PRODUCT_HEADINGS, rows)
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
    xla = "auto" if xla_works(checks["results"], tasks.devices(gpus)[0], precision) else "off"
    memory = gpu_memory(machine)
    # Each in a process of its own, as memory is measured as that of the process.
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
    tables.print_table(title, tables.MODEL_HEADINGS, map(tables.model_row, both))
    title = "The parts of a step, each timed alone (idle: the rest of the step), and a checkpoint:"
    tables.print_table(title, tables.PART_HEADINGS, map(tables.part_row, both))
    demands = {}
    for task, answer in both:
        if "rows_per_second" in answer:
            name = f"{tables.model_name(task)} on {answer['devices']}"
            demands.setdefault(task["length"], []).append((name, answer["rows_per_second"]))
    rows = (tables.pipeline_row(pair, demands) for pair in piped)
    title = "The input pipeline, packed rows with masks drawn while training:"
    tables.print_table(title, tables.PIPELINE_HEADINGS, rows)


def xla_works(checked, device, precision):
    """Whether all checks with XLA on a device in a precision passed."""
    return all(
        answer["result"] == "ok"
        for task, answer in checked
        if task["device"] == device and task["xla"] and task["precision"] == precision
    )


def gpu_memory(machine):
    """The memory of the first GPU in MiB, by nvidia-smi; None if it is not known."""
    listed = machine["nvidia_smi"]["gpus"]
    memory = listed[0]["memory_mib"] if listed and machine["gpus"] else None
    return float(memory) if memory else None


def make_report(machine, sections):
    """The value of the JSON file."""
    return {
        "version": 1,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "gpu_reason": None if machine["gpus"] else NO_GPU,
        **{
            name: {
                "results": part["results"]
                and [{"task": task, "answer": answer} for task, answer in part["results"]],
                "reason": part["reason"],
            }
            for name, part in sections.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
