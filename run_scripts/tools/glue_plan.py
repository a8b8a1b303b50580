"""Says how a model is fine-tuned on each task of a benchmark whose data is there.

Used by benchmark.sh: a line for each task, its name, the program and the program's flags, with tabs
between them.
"""

import dataclasses
import os
import sys
from typing import NamedTuple

from bert_common.errors import InputError
from bert_tf.checkpoint_files import exists
from finetuning.datasets import DATASETS
from finetuning.ner.data import FORMATS
from finetuning.readers import find_file
from run_scripts.flags.declaration import flag
from run_scripts.flags.finetune import measured_splits
from run_scripts.flags.flag_files import SHIPPED
from run_scripts.flags.parser import run_program
from run_scripts.model_folder import find_checkpoint, find_config, find_folder

BENCHMARKS = {
    "glue": ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte", "wnli"),
    "korean": (
        "nsmc", "klue-tc", "klue-nli", "klue-sts", "klue-ner", "kornli", "korsts", "paws-x", "3i4k",
        "hate-speech", "hate-bias",
    ),
}  # fmt: skip


class Row(NamedTuple):
    """A task of a benchmark.

    Attributes:
        program: what fine-tunes it, a function of `run_scripts.programs`.
        folder: what the folder of its files is called.
        files: split -> their names, of the splits that must be there.
        splits: what it is measured on; the first one leads.
        metrics: what it is measured by.
    """

    program: str
    folder: str
    files: dict
    splits: tuple
    metrics: tuple


def row_of(task):
    """The row of a task, whichever program it belongs to."""
    if task in FORMATS:
        form = FORMATS[task]
        files = {split: (form.files[split],) for split in ("train", "dev")}
        metrics = ("entity_macro_f1", "character_macro_f1")
        return Row("run_ner", form.folder, files, ("dev",), metrics)
    found = DATASETS[task]
    splits = tuple(measured_splits(found))
    files = {split: found.sources[split].files for split in ("train", *splits)}
    return Row("run_classifier", found.folder, files, splits, found.metrics)


@dataclasses.dataclass(frozen=True)
class PlanFlags:
    """Prints name, program and flags of each task of a benchmark whose data is there."""

    benchmark: str = flag(None, "Which tasks.", required=True, choices=tuple(BENCHMARKS))
    model: str = flag(None, "A pre-trained model: its folder or a checkpoint.", required=True)
    data_dir: str = flag(None, "The folder with a folder for each task.", required=True)
    output_dir: str = flag(None, "Each task gets a folder of its name below it.", required=True)


def main(argv=None):
    """The program; returns the exit status."""
    return run_program(show_plan, PlanFlags, argv)


def show_plan(values):
    """Prints the plan; names the tasks that are left out on standard error."""
    model_type, model = model_flags(values.model)
    tasks = BENCHMARKS[values.benchmark]
    there = [task for task in tasks if has_data(values.data_dir, task)]
    missing = [f"{task} (folder {row_of(task).folder})" for task in tasks if task not in there]
    if not there:
        raise InputError(
            f"{values.data_dir} must hold a folder of a task: {', '.join(missing)}. Received: none"
        )
    if missing:
        print(f"left out, no data in {values.data_dir}: {', '.join(missing)}", file=sys.stderr)
    for task in there:
        flags = [
            f"--flagfile={find_flagfile(values.benchmark, model_type, task)}",
            f"--task_name={task}",
            f"--data_dir={os.path.join(values.data_dir, row_of(task).folder)}",
            f"--output_dir={os.path.join(values.output_dir, task)}",
            *model,
        ]
        print("\t".join([task, row_of(task).program, *flags]))


def has_data(data_dir, task):
    """Whether a task's folder is there.

    Raises:
        InputError: the folder is there and a file is not: now, not after the tasks before it.
    """
    row = row_of(task)
    folder = os.path.join(data_dir, row.folder)
    if not os.path.isdir(folder):
        return False
    for names in row.files.values():
        for name in names:
            find_file(name, folder, row.folder)
    return True


def find_flagfile(benchmark, model_type, task):
    """The flag file of a task and model, or what all tasks of that benchmark share."""
    names = (f"{benchmark}_{model_type}_{task}", f"{benchmark}_{task}", f"{benchmark}_{model_type}")
    paths = [SHIPPED / f"{name}.flags" for name in (*names, benchmark)]
    return next(path for path in paths if path.exists())


def model_flags(model):
    """The flags that mean a pre-trained model.

    Args:
        model: a checkpoint, or a folder with one. Configuration and tokenizer lie beside it.

    Returns:
        "bert" or "albert", and a list of flags.

    Raises:
        InputError: there is no checkpoint, or no configuration.
    """
    folder = find_folder(model if os.path.isdir(model) else os.path.dirname(model))
    model_type, _ = find_config(folder)
    if exists(model):
        return model_type, [f"--model_dir={folder}", f"--init_checkpoint={model}"]
    find_checkpoint(folder)  # now, not when the first task begins
    return model_type, [f"--model_dir={folder}"]


if __name__ == "__main__":
    sys.exit(main())
