"""The run_classifier program, which fine-tunes a pre-trained model to classify or rate texts."""

import dataclasses
import functools
import operator
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.text_encoding import NAMES
from finetuning.classes import check_weights, count_classes
from finetuning.classification.columns import Columns, find_columns
from finetuning.classification.custom_data import own_dataset, own_source
from finetuning.datasets import DATASETS, Dataset
from finetuning.labels import spell_labels
from finetuning.readers import files_in, read_split
from finetuning.settings import split_names
from finetuning.tables import (
    ENDINGS,
    FILE_TYPES,
    OWN_FILES,
    TABLE_ENDINGS,
    check_column,
    column_names,
    composed,
    has_column,
)
from finetuning.tasks import TASKS
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags import groups
from run_scripts.flags.declaration import redeclare
from run_scripts.flags.finetune import TextFlags, head_options, split_of_predicted_file
from run_scripts.flags.parser import run_program

if TYPE_CHECKING:
    from finetuning.classification.task import Classification

SETTINGS = TASKS["classification"].settings


@dataclasses.dataclass(frozen=True)
class ClassifierFlags(TextFlags):
    """Fine-tunes BERT, ALBERT or ELECTRA to classify sentences or pairs, or to rate them.

    To evaluate or predict after training, give --do_eval or --do_predict, the examples and the
    --output_dir of the training run."""

    EXAMPLE = (
        "--task_name=nsmc --data_dir=data/nsmc --output_dir=output/nsmc "
        "--albert_config_file=output/model/albert_config.json --tokenizer_dir=data/vocab "
        "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_eval"
    )

    data_dir: str = redeclare(
        TextFlags,
        "data_dir",
        help="The folder with the task's files. Omit if --data_file or --train_file is given.",
    )
    data_file: str = groups.FILES.input_file(
        "A single file with all your examples: .csv, .tsv, .jsonl, .json or .parquet. A tenth of "
        "them are held out for evaluation."
    )
    train_file: str = groups.FILES.input_file(
        "Your own training file: .csv, .tsv, .jsonl, .json or .parquet."
    )
    dev_file: str = groups.FILES.input_file(
        "Your own file of dev examples, in any format that --train_file accepts."
    )
    test_file: str = groups.FILES.input_file(
        "Your own file of test examples, with or without labels, in any format that "
        "--train_file accepts."
    )
    predict_file: str = redeclare(
        TextFlags,
        "predict_file",
        help="The file of examples whose labels --do_predict predicts, in any format that "
        "--train_file accepts. Its columns and the predictions go to NAME_predictions.csv in "
        "--output_dir; NAME is the file's name without .csv.",
    )
    task_name: str = groups.TASK.optional(
        f"The data set: {', '.join(DATASETS)}. mismnli is MNLI with its mismatched dev and "
        "test sets. csv, tsv, jsonl: your own train, dev and test files in --data_dir. Not needed "
        "if a flag such as --train_file names your files.",
        convert=str.lower,
    )
    task_type: str = groups.COLUMNS.optional(
        "What to predict on your own data: one label, several labels or a number. Default: "
        "single_label.",
        choices=SETTINGS["task_type"].choices,
    )
    text_column: str = groups.COLUMNS.optional(
        "The column with the text in your own data files, by name or, in tables without a "
        'header, by number from 0. Default: for files in --data_dir, the column named "text";'
        " for --data_file and --train_file, the column whose name suggests that it holds "
        "text.",
        convert=composed,
    )
    second_column: str = groups.COLUMNS.optional(
        "The column with the second text of each pair in your own data files. Default: none, "
        "for single texts.",
        convert=composed,
    )
    encoding: str = groups.COLUMNS.optional(
        "The encoding of your own data files. Default: detected.", choices=tuple(NAMES)
    )
    label_column: str = groups.COLUMNS.optional(
        "The column with the label (comma-separated labels if --task_type=multi_label) in "
        'your own data files. Default: for files in --data_dir, the column named "label"; for'
        " --data_file and --train_file, the column whose name suggests that it holds labels.",
        convert=composed,
    )
    id_column: str = groups.COLUMNS.optional(
        "The column with the examples' ids in your own data files. Default: none; file and line "
        "number serve as ids.",
        convert=composed,
    )
    labels: str = groups.COLUMNS.optional(
        "All labels of your own data, comma-separated. Default: the labels in the training file.",
        convert=spell_labels,
        not_with=("task_type=regression",),
    )
    metrics: str = groups.COLUMNS.optional(
        "The metrics to compute on your own data, comma-separated. The first selects the best"
        " checkpoint. Default: accuracy,macro_f1; with --task_type=multi_label, "
        "micro_f1,macro_f1; with --task_type=regression, pearson,spearman.",
    )
    class_weights: str = groups.OPTIMIZER.flag(
        "none",
        "How to weight examples in the loss. none: equally. balanced: in inverse proportion to "
        "the size of their class, so that rare classes count as much as frequent ones.",
        choices=("none", "balanced"),
        kept=True,
        recorded=True,
    )
    export_dir: str = groups.EXPORT.output_folder(
        "Write a SavedModel, which takes serialized tf.Examples, to a new subfolder of this "
        "folder. The best checkpoint is exported if evaluations selected one, else the last.",
        not_with=("num_seeds",),
    )
    threshold_to_export: float = groups.EXPORT.optional(
        'A number that the SavedModel written to --export_dir returns as "threshold" with its'
        " predictions, for your own use.",
        least=-1e9,
        needs=("export_dir",),
    )


def classify(values: ClassifierFlags) -> None:
    """Checks run_classifier's own flags and runs the program."""
    predicted = split_of_predicted_file(values, ".csv")
    own = check_own_files(values)
    if values.export_dir:
        make_writable(values.export_dir, "--export_dir must be a directory that can be written")
    finetune(values, PROGRAM, **predicted, **own)


# Flag that names a file of the user's own -> the split in the file.
FILE_FLAGS = {"data_file": "data", "train_file": "train", "dev_file": "dev", "test_file": "test"}


def check_own_files(values: ClassifierFlags) -> dict[str, Any]:
    """Checks the flags that name files; prints and returns what they imply for flags not given."""
    files = own_files(values)
    if not files and not values.predict_file:
        if not values.data_dir:
            raise InputError(
                "--data_dir must be given, or --data_file or --train_file with your own file. "
                "Received: none"
            )
        return {}
    named = next(n for n in (*FILE_FLAGS, "predict_file") if getattr(values, n))
    other = "data_dir" if values.data_dir else "task_name"
    if values.data_dir or (files and values.task_name not in (None, OWN_FILES)):
        raise InputError(
            f"--{named} and --{other}: only one may be given, as both name the examples. "
            "Received: both"
        )
    if values.data_file and len(files) > 1 and set(files) - {"data", "test"}:
        raise InputError(
            "--data_file is split itself: only --test_file may be beside it. "
            f"Received: {', '.join(f'--{n}' for n in FILE_FLAGS if getattr(values, n))}"
        )
    if values.do_train and not {"data", "train"} & files.keys():
        raise InputError("--do_train needs --data_file or --train_file. Received: neither")
    known: dict[str, Any] = {"task_name": OWN_FILES} if files else {}
    if values.do_train:
        path = values.data_file or values.train_file
        check_named(path, ("text_column", "second_column", "label_column", "id_column"), values)
        columns = Columns(values.text_column, values.second_column, values.label_column, None)
        found = find_columns(path, columns, encoding=values.encoding)
        known |= {"text_column": found.text, "label_column": found.label}
    if values.predict_file:
        check_named(values.predict_file, ("text_column", "second_column", "id_column"), values)
    return known


def check_named(path: str, flags: Iterable[str], values: ClassifierFlags) -> None:
    """Raises an `InputError` if one of the flags names a column that a file lacks."""
    names = column_names(path, values.encoding)
    for flag_name in flags:
        column = getattr(values, flag_name)
        if column is not None:
            check_column(names, column, f"--{flag_name}", path)


def own_files(values: ClassifierFlags) -> dict[str, str]:
    """Returns a dict of split -> path for the flags that name files."""
    return {split: getattr(values, n) for n, split in FILE_FLAGS.items() if getattr(values, n)}


def files_of_folder(values: ClassifierFlags) -> dict[str, str]:
    """Returns the user's own files in --data_dir; to a trained model their ending is free."""
    kinds = [ending[1:] for ending in ENDINGS]
    if values.task_name in FILE_TYPES:
        kinds = [values.task_name] if values.do_train else [values.task_name, *kinds]
    return files_in(values.data_dir, kinds)


def read_examples(dataset: Dataset, split: str, data_dir: str) -> tuple[list[Any], dict[str, int]]:
    """Reads the examples of a split and counts the rows that were left out."""
    examples, left_out = read_split(dataset, split, data_dir)
    return examples, {f"left out ({why})": count for why, count in left_out.items()}


def make_task(job: DownstreamJob[ClassifierFlags, Dataset]) -> "Classification":
    """Returns the `Classification` of a `DownstreamJob`."""
    from finetuning.classification.task import Classification

    options = head_options(job.flags, job.config)
    balanced = job.flags.class_weights == "balanced"
    return Classification(job.dataset, job.tokenizer, **options, balanced=balanced)


def read_data(values: ClassifierFlags) -> Dataset:
    """Returns the data set that the flags name, which must suit --class_weights."""
    dataset = _read_data(values)
    if values.predict_file:
        dataset = add_predicted(dataset, values)
    if values.do_eval and dataset.splits.get("test") is False and dataset.sources["test"].own:
        print("test: no labels, so it is not evaluated on (--label_column names their column)")
    check_weights(values.class_weights, dataset.labels)
    return dataset


def _read_data(values):
    """Returns the data set that --task_name names, or one made of the user's own files."""
    if values.task_name in DATASETS:
        own = [name for name, setting in SETTINGS.items() if setting.of_own_files]
        given = [name for name in own if getattr(values, name)]
        if values.predict_file:  # the user's own file, whose columns flags may name
            is_pair = DATASETS[values.task_name].sources["train"].second is not None
            named = ("text_column", "second_column") if is_pair else ("text_column",)
            given = [name for name in given if name not in named]
        if given:
            raise InputError(
                f"--{given[0]} is for --task_name=csv, tsv and jsonl. Received: "
                f"--task_name={values.task_name}"
            )
        return DATASETS[values.task_name]
    # A transformers folder names no task: a file to predict is the user's own.
    file_type = values.task_name or (OWN_FILES if values.predict_file else None)
    if file_type not in (OWN_FILES, *FILE_TYPES):
        raise InputError(
            f"--task_name must be one of {', '.join((*DATASETS, *FILE_TYPES))}. "
            f"Received: {values.task_name or 'none'}"
        )
    described = {
        "task_type": values.task_type or "single_label",
        "columns": own_columns(values),
        "labels": split_names(values.labels) or None,
        "metrics": split_names(values.metrics) or None,
        "encoding": values.encoding,
    }
    files = files_of_folder(values) if values.data_dir else own_files(values)
    return own_dataset(files, **described)


def own_columns(values: ClassifierFlags) -> Columns:
    """Returns the `Columns` of the user's own files."""
    return Columns(
        values.text_column or "text",
        values.second_column,
        values.label_column or "label",
        values.id_column,
    )


def add_predicted(dataset: Dataset, values: ClassifierFlags) -> Dataset:
    """Returns the data set with --predict_file added as a split without labels."""
    path, names = values.predict_file, column_names(values.predict_file, values.encoding)
    columns, entities = own_columns(values)._replace(label=None), ()
    if not has_column(names, columns.id):  # saved by the training, not given by a flag
        columns = columns._replace(id=None)
    if values.task_name in DATASETS:
        usual = dataset.sources.get("test") or dataset.sources["train"]
        text = values.text_column or (usual.text if isinstance(usual.text, str) else None)
        columns = Columns(text, values.second_column or usual.second, None)
        entities = usual.entities
        if entities and path.lower().endswith(TABLE_ENDINGS):
            raise InputError(
                f"--predict_file of --task_name={values.task_name} must be JSON, whose entities "
                f"are objects. Received: {path}"
            )
    columns = find_columns(path, columns, needs_label=False, encoding=values.encoding)
    source = own_source(path, columns, values.encoding)._replace(entities=entities)
    return dataset._replace(sources={**dataset.sources, values.predict_split: source})


PROGRAM = Program(
    TASKS["classification"],
    read_data,
    read_examples,
    make_task,
    texts=operator.attrgetter("text", "second"),
    count_classes=lambda dataset, examples: count_classes(dataset.labels, examples),
)


main = functools.partial(run_program, classify, ClassifierFlags)

if __name__ == "__main__":
    sys.exit(main())
