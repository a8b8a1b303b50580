"""The check_devices program, which checks that this machine's devices compute what they should.

It compares one training step of a tiny BERT with the same step on the CPU in float32 without XLA,
on every device and with every strategy, with and without XLA, in every precision, and with each way
to train in `steps.OPTIONS`. Replicas must have the same weights afterwards, to the bit.

The checks run in separate processes: if one dies, as XLA does on a GPU that it cannot compile for,
the rest runs in a new one. The report holds no names of users, hosts or folders, unless an error's
message does.
"""

import dataclasses
import functools
import sys
from typing import Any

from run_scripts.flags import groups
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE, NOTHING
from run_scripts.tools.check_devices import report, tasks
from run_scripts.tools.check_devices.machine import describe_machine, print_machine
from run_scripts.tools.check_devices.processes import run_groups


@dataclasses.dataclass(frozen=True)
class CheckDevicesFlags:
    """Checks that this machine's devices compute what they should."""

    EXAMPLE = "--report=report.json"

    report: str = groups.OUTPUT.optional(
        "The JSON file to write the results to.", takes=(FILE, NOTHING)
    )
    quick: bool = groups.COMPATIBILITY.flag(
        False, "Accepted but has no effect: only checks are run.", no_effect=True
    )
    models: str = groups.COMPATIBILITY.unused(
        "Accepted but has no effect: python -m benchmarks.speed.devices trains models."
    )


def check(values: CheckDevicesFlags) -> None:
    """Runs all checks; raises a MachineError if one fails."""
    if values.report:
        report.make_folder(values.report)
    machine = describe_machine()
    print_machine(machine)
    sys.stdout.flush()
    sections = {"checks": run_checks(len(machine["gpus"]))}
    report.finish(machine, sections, values.report)


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


main = functools.partial(run_program, check, CheckDevicesFlags)

if __name__ == "__main__":
    sys.exit(main())
