"""The programs run_glue and run_korean, which fine-tune a model on every task of a benchmark."""

import dataclasses
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from bert_common.errors import MachineError
from bert_common.startup import replace_interrupt_handler
from run_scripts.flags import groups
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FOLDER
from run_scripts.tools.glue_plan import plan_tasks
from run_scripts.tools.glue_table import read_results, show_table


@dataclasses.dataclass(frozen=True)
class BenchmarkFlags:
    """The arguments that stand before the flags for the tasks' programs."""

    model: str = groups.MODEL.required(
        "A pre-trained model: its folder or a checkpoint.", is_input=True, is_path=True
    )
    data_dir: str = groups.FILES.required(
        "The folder that holds one sub-folder per task.", takes=(FOLDER,)
    )
    output_dir: str = groups.OUTPUT.output_folder(
        "The folder that holds one sub-folder per task.", required=True
    )


def run_benchmark(benchmark: str, argv: Sequence[str] | None = None) -> int:
    """Runs the tasks of a benchmark; returns the exit status."""
    program, *arguments = sys.argv if argv is None else argv
    if len(arguments) < 3:
        usage = f"run_{benchmark} MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]"
        print(f"usage: {usage}", file=sys.stderr)
        return 2
    model, data_dir, output_dir, *flags = arguments
    given = [f"--model={model}", f"--data_dir={data_dir}", f"--output_dir={output_dir}"]
    run = functools.partial(run_tasks, benchmark, flags)
    return run_program(run, BenchmarkFlags, [program, *given])


def run_tasks(benchmark: str, flags: Sequence[str], values: BenchmarkFlags) -> None:
    """Runs the tasks that have no results yet, with `flags` added, then prints the table."""
    commands = plan_tasks(benchmark, values.model, values.data_dir, values.output_dir)
    for name, command in commands.items():
        print(f"\n== {name}", flush=True)
        folder = os.path.join(values.output_dir, name)
        if read_results(folder):
            print(f"{folder} exists already")
            continue
        status = run_task([*command, *flags])
        # After Ctrl-C a program saves and exits with status 0.
        if status or not read_results(folder):
            raise MachineError(
                f"every task must finish; the same command continues from there. Received: {name} "
                f"ended with status {status}"
            )
    print()
    show_table(benchmark, values.output_dir)


def run_task(command: Sequence[str]) -> int:
    """Runs a program, which gets a Ctrl-C alone, as it may save; returns its exit status."""
    with replace_interrupt_handler(lambda *_: None, instead_of=signal.default_int_handler):
        return subprocess.run(
            [sys.executable, "-m", "run_scripts.programs", *command], stdin=subprocess.DEVNULL
        ).returncode


run_glue = functools.partial(run_benchmark, "glue")
run_korean = functools.partial(run_benchmark, "korean")
