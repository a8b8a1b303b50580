"""Says how a model is fine-tuned on each task of a benchmark whose data is there.

Used by benchmark.sh: a line for each task, its name, the program and the program's flags, with tabs
between them.
"""

import dataclasses
import glob
import os
import sys
from typing import NamedTuple

from bert_tf.checkpoint_files import exists
from finetuning.ner_files import FORMATS
from finetuning.readers import find_file
from finetuning.tasks import TASKS
from run_scripts.cli import flag, run_program
from run_scripts.finetune_flags import measured_splits
from run_scripts.flag_files import SHIPPED
from run_scripts.model_folder import find_checkpoint, find_config
from tokenization.errors import InputError

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
    found = TASKS[task]
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
    column, model = model_flags(values.model)
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
            f"--flagfile={find_flagfile(values.benchmark, column, task)}",
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


def find_flagfile(benchmark, column, task):
    """The flag file of a task and model, or what all tasks of that benchmark share."""
    names = (f"{benchmark}_{column}_{task}", f"{benchmark}_{task}", f"{benchmark}_{column}")
    paths = [SHIPPED / f"{name}.flags" for name in (*names, benchmark)]
    return next(path for path in paths if path.exists())


def model_flags(model):
    """The flags that mean a pre-trained model.

    Args:
        model: a checkpoint, or a folder with one: this project's or one that Google published.
            Configuration and tokenizer lie beside it.

    Returns:
        "bert" or "albert", and a list of flags; without a tokenizer's if none is there.

    Raises:
        InputError: there is no checkpoint, or no configuration.
    """
    folder = model if os.path.isdir(model) else os.path.dirname(model)
    column, config = find_config(folder)
    checkpoint = model if exists(model) else find_pretrained(model)
    flags = [f"--{column}_config_file={config}", f"--init_checkpoint={checkpoint}"]
    sentencepiece = glob.glob(os.path.join(glob.escape(folder), "*.model"))
    if os.path.exists(os.path.join(folder, "tokenizer_config.json")):
        flags.append(f"--tokenizer_dir={folder}")
    elif len(sentencepiece) == 1:
        flags.append(f"--spm_model_file={sentencepiece[0]}")
    elif os.path.exists(os.path.join(folder, "vocab.txt")):
        flags.append(f"--vocab_file={os.path.join(folder, 'vocab.txt')}")
    return column, flags


def find_pretrained(folder):
    """The checkpoint of this project in a folder, or the only one of another name."""
    try:
        return find_checkpoint(folder)
    except InputError:
        indexes = glob.glob(os.path.join(glob.escape(folder), "*.index"))
        if len(indexes) != 1:
            raise
        return indexes[0].removesuffix(".index")


if __name__ == "__main__":
    sys.exit(main())
