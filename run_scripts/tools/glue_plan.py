"""Plans how to fine-tune a model on each task of a benchmark whose data exists."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.datasets import DATASETS
from finetuning.ner.data import FORMATS
from finetuning.readers import find_file
from korean_bert.loading import open_folder
from model_formats.model_folder import ModelFolder
from model_formats.weights import check_weights
from run_scripts.flags.finetune import measured_splits
from run_scripts.flags.flag_files import SHIPPED

BENCHMARKS = {
    "glue": ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte", "wnli"),
    "korean": (
        "nsmc", "klue-tc", "klue-nli", "klue-sts", "klue-ner", "klue-re", "kornli", "korsts",
        "paws-x", "3i4k", "hate-speech", "hate-bias", "korquad", "klue-mrc",
    ),
}  # fmt: skip

# Models up to this width use the flag files BENCHMARK_small*.flags, if a benchmark has any, because
# small models need higher learning rates (3e-4 for ELECTRA-small, 256 wide: arXiv:2003.10555,
# appendix B; up to 3e-4 for the smaller models in google-research/bert's README).
SMALL_HIDDEN_SIZE = 256


class BenchmarkTask(NamedTuple):
    """A task of a benchmark."""

    program: str  # the program that fine-tunes a model on it, a name of `run_scripts.programs`
    folder: str  # the name of the folder with its files
    files: Mapping[str, Sequence[str]]  # split -> names of its files; the splits that must exist
    splits: tuple[str, ...]  # the splits to evaluate on, the main one first
    metrics: tuple[str, ...]  # the names of its metrics
    scale: int = 100  # the factor by which its scores are multiplied to be shown


def _questions(folder, file, metrics):
    """Returns a task of run_squad, which scores in per cent; `file` has a gap for the split."""
    files = {split: (file.format(split),) for split in ("train", "dev")}
    return BenchmarkTask("run_squad", folder, files, ("dev",), metrics, scale=1)


QUESTION_TASKS = {
    "korquad": _questions("korquad", "KorQuAD_v1.0_{}.json", ("exact", "f1")),
    "klue-mrc": _questions("klue-mrc-v1.1", "klue-mrc-v1.1_{}.json", ("exact", "rouge_w")),
}


def find_task(name: str) -> BenchmarkTask:
    """Looks up a task by its name, whichever program it belongs to."""
    if name in QUESTION_TASKS:
        return QUESTION_TASKS[name]
    if name in FORMATS:
        form = FORMATS[name]
        files = {split: (form.files[split],) for split in ("train", "dev")}
        metrics = ("entity_macro_f1", "character_macro_f1")
        return BenchmarkTask("run_ner", form.folder, files, ("dev",), metrics)
    dataset = DATASETS[name]
    splits = tuple(measured_splits(dataset))
    files = {split: dataset.sources[split].files for split in ("train", *splits)}
    return BenchmarkTask("run_classifier", dataset.folder, files, splits, dataset.metrics)


def plan_tasks(benchmark: str, model: str, data_dir: str, output_dir: str) -> dict[str, list[str]]:
    """Returns the name of each task with data -> the program that learns it, then its flags.

    Prints the tasks without data on standard error.
    """
    folder, flags_of_model = model_flags(model)
    model_type, hidden_size = read_kind(folder)
    tasks = {name: find_task(name) for name in BENCHMARKS[benchmark]}
    present = {name: task for name, task in tasks.items() if has_data(data_dir, task)}
    missing = [f"{n} (folder {task.folder})" for n, task in tasks.items() if n not in present]
    if not present:
        raise InputError(
            f"{data_dir} must hold a folder of a task: {', '.join(missing)}. Received: none"
        )
    if missing:
        print(f"left out, no data in {data_dir}: {', '.join(missing)}", file=sys.stderr)
    return {
        name: [
            task.program,
            f"--flagfile={find_flagfile(benchmark, model_type, hidden_size, name)}",
            f"--task_name={name}",
            f"--data_dir={find_data(data_dir, task)}",
            f"--output_dir={os.path.join(output_dir, name)}",
            *flags_of_model,
        ]
        for name, task in present.items()
    }


def has_data(data_dir: str, task: BenchmarkTask) -> bool:
    """Returns True if a task's folder exists; raises an `InputError` if it lacks a file."""
    folder = os.path.join(data_dir, task.folder)
    if not os.path.isdir(folder):
        return False
    for names in task.files.values():
        for name in names:
            find_file(name, folder, task.folder)
    return True


def find_data(data_dir: str, task: BenchmarkTask) -> str:
    """Returns the folder with the files of a task that `has_data`.

    It may be inside a folder of the same name, if an archive was unpacked there; run_squad does not
    search subfolders.
    """
    first = next(iter(task.files.values()))[0]
    return os.path.dirname(find_file(first, os.path.join(data_dir, task.folder), task.folder))


def find_flagfile(benchmark: str, model_type: str, hidden_size: int | None, task: str) -> Path:
    """Finds the flag file of a task and model, or the one that several tasks share.

    A model type without flag files uses BERT's.
    """
    names = (f"{benchmark}_{model_type}_{task}", f"{benchmark}_{task}", f"{benchmark}_{model_type}")
    if hidden_size and hidden_size <= SMALL_HIDDEN_SIZE:
        names = (f"{benchmark}_small_{task}", f"{benchmark}_small", *names)
    paths = [SHIPPED / f"{name}.flags" for name in (*names, benchmark, f"{benchmark}_bert")]
    return next(path for path in paths if path.exists())


def read_kind(folder: ModelFolder) -> tuple[str, int | None]:
    """Returns the model type and hidden size of a `ModelFolder`; the size is None if not given."""
    values = folder.config_file.values
    size = values.get("hidden_size") if isinstance(values, dict) else None
    return folder.model_type, size if isinstance(size, int) else None


def model_flags(model: str) -> tuple[ModelFolder, list[str]]:
    """Returns the folder of a pre-trained model and the flags that name the model.

    `model` is a folder or a checkpoint, as `korean_bert.load_model` takes it.
    """
    folder = open_folder(model)
    check_weights(folder.checkpoint)  # before the first task begins
    chosen = [f"--init_checkpoint={folder.chosen}"] if folder.chosen else []
    return folder, [f"--model_dir={folder.path}", *chosen]
