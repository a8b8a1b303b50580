"""Checks that this machine's devices compute what they should.

    python -m run_scripts.tools.check_devices --report=report.json

It compares one training step of a tiny BERT with the same step on the CPU in float32 without XLA,
on every device and with every strategy, with and without XLA, in every precision, and with each way
to train in `steps.OPTIONS`. Replicas must have the same weights afterwards, to the bit.

The checks run in separate processes: if one dies, as XLA does on a GPU that it cannot compile for,
the rest runs in a new one. --report writes versions, driver, links and answers to one JSON file. It
holds no names of users, hosts or folders, unless an error's message does. To measure the speed of
the devices, run `python -m benchmarks.speed.devices` in a checkout of the project.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from bert_common import VERSION
from bert_common.startup import interruptible
from run_scripts.tools.check_devices import report, tasks
from run_scripts.tools.check_devices.machine import describe_machine, print_machine
from run_scripts.tools.check_devices.processes import run_groups

SPEEDS = "python -m benchmarks.speed.devices, in a checkout of the project"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the console script; returns the exit status: 0 if every check passes, otherwise 1."""
    with interruptible():
        return check(parse(argv))


def check(arguments: argparse.Namespace) -> int:
    """Runs all checks; returns the exit status."""
    if arguments.report and not report.names_a_file(arguments.report):
        return 1
    if arguments.models:
        print(f"note: models are trained by {SPEEDS}", file=sys.stderr)
    machine = describe_machine()
    print_machine(machine)
    sys.stdout.flush()
    sections = {"checks": run_checks(len(machine["gpus"]))}
    return report.finish(machine, sections, arguments.report)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    installed = not sys.argv[0].endswith(".py")  # a console script
    parser = argparse.ArgumentParser(
        prog=None if installed else "python -m run_scripts.tools.check_devices",
        description="Checks that this machine's devices compute what they should.",
    )
    parser.add_argument("--report", help="a JSON file to write all results to")
    parser.add_argument("--quick", action="store_true", help="has no effect: only checks are run")
    parser.add_argument("--models", help=f"has no effect: models are trained by {SPEEDS}")
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return parser.parse_args(argv)


def run_checks(gpus: int) -> dict[str, Any]:
    """Runs the checks and prints them; returns their section of the report."""
    listed = [*tasks.check_tasks(gpus), *tasks.option_tasks(gpus)]
    checked = run_groups(tasks.check_groups(listed, gpus), "checks")
    title = (
        "Training steps, compared with the CPU's in float32 without XLA (mirrored: "
        f"{'all GPUs' if gpus else 'two logical CPUs'}; split: two logical GPUs on one; "
        f"multi_worker: two processes with {'a GPU' if gpus > 1 else 'the CPU'} each):"
    )
    report.print_table(title, report.CHECK_HEADINGS, map(report.check_row, checked))
    return report.section(checked)


if __name__ == "__main__":
    sys.exit(main())
