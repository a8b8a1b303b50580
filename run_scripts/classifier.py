"""The program run_classifier: fine-tunes a pre-trained model to classify or rate texts."""

import dataclasses
import operator
import sys

from bert_common.errors import InputError
from bert_common.folders import make_writable
from finetuning.classes import check_weights, count_classes
from finetuning.classification.custom_data import FILE_TYPES, TASK_TYPES, Columns, custom_dataset
from finetuning.datasets import DATASETS
from finetuning.readers import read_split
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags.declaration import flag
from run_scripts.flags.finetune import FinetuneFlags, head_options
from run_scripts.flags.parser import run_program

# The flags that describe the user's own files.
CUSTOM_FLAGS = (
    "task_type", "text_column", "second_column", "label_column", "id_column", "labels", "metrics",
)  # fmt: skip

# The flags that a fine-tuned model's folder records.
TASK_FLAGS = ("task_name", *CUSTOM_FLAGS, "feature_layers", "max_seq_length")


@dataclasses.dataclass(frozen=True)
class ClassifierFlags(FinetuneFlags):
    """Fine-tunes BERT or ALBERT to classify sentences or pairs, or to predict a number for them.

    With --do_eval or --do_predict alone, only --output_dir (of an earlier training) and --data_dir
    must be given: task, sizes and tokenizer are stored beside the weights."""

    task_name: str = flag(
        None,
        f"One of {', '.join(DATASETS)}; or csv, tsv or jsonl for files of your own in --data_dir: "
        "train, dev and test, not all of which need exist.",
    )
    task_type: str = flag(
        None, "For your own files: the type of task. Without it: single_label.", choices=TASK_TYPES
    )
    text_column: str = flag(
        None,
        "For your own files: the column of the text, by its name in the header or its key; by its "
        "number from 0 where a .tsv has no header. Without it: text.",
    )
    second_column: str = flag(None, "Likewise the column of the second text, if there is one.")
    label_column: str = flag(
        None, "Likewise that of the label, or several, separated by commas. Without it: label."
    )
    id_column: str = flag(None, "Likewise that of the example's id. Without it: file and line.")
    labels: str = flag(
        None, "For your own files: all labels, separated by commas. Without it: those in train."
    )
    metrics: str = flag(
        None,
        "For your own files: the metrics, separated by commas; the first chooses the best "
        "checkpoint. Without it: accuracy and macro_f1, or what suits the type.",
    )
    class_weights: str = flag(
        "none",
        "balanced: an example weighs the more in the training loss the rarer its class is (number "
        "of examples / (classes * examples of the class)); for texts of very uneven classes.",
        choices=("none", "balanced"),
    )
    export_dir: str = flag(
        None,
        "Write a SavedModel of the final weights (the best, if evaluations chose them) into a new "
        "folder in this one. It takes tf.Examples of max_seq_length pieces, as ALBERT's does.",
    )
    threshold_to_export: float = flag(
        None,
        'A number that the SavedModel returns beside its predictions, as "threshold".',
        least=-1e9,
        most=1e9,
    )


def main(argv=None):
    """The console script and the launcher; returns the exit status."""
    return run_program(classify, ClassifierFlags, argv)


def classify(values):
    """Checks the flags that are run_classifier's own, and runs the program."""
    if values.task_name:
        values = dataclasses.replace(values, task_name=values.task_name.lower())
    check_export(values)
    program = Program(
        TASK_FLAGS,
        read_data,
        read_examples,
        make_task,
        texts=operator.attrgetter("text", "second"),
        count_classes=count_dataset_classes,
    )
    finetune(values, program)


def count_dataset_classes(dataset, examples):
    """How many examples have each class of a `Dataset`."""
    return count_classes(dataset.labels, examples)


def check_export(values):
    """Refuses what cannot be exported, before any work is done."""
    if values.threshold_to_export is not None and not values.export_dir:
        raise InputError(
            "--threshold_to_export requires --export_dir. Received: "
            f"--threshold_to_export={values.threshold_to_export} without"
        )
    if values.export_dir and values.num_seeds > 1:
        raise InputError(
            "--export_dir requires --num_seeds=1: export the seed of your choice afterwards, "
            f"without --do_train. Received: --num_seeds={values.num_seeds}"
        )
    if values.export_dir:
        make_writable(values.export_dir, "--export_dir must be a directory that can be written")


def read_examples(dataset, split, data_dir):
    """Reads the examples of a split, and counts the rows that were left out."""
    examples, left_out = read_split(dataset, split, data_dir)
    return examples, {f"left out ({why})": count for why, count in left_out.items()}


def make_task(values, dataset, config, tokenizer):
    """The task of the flags as a `Classification`."""
    from finetuning.classification.task import Classification

    return Classification(
        dataset,
        tokenizer,
        *head_options(values, config),
        balanced=values.class_weights == "balanced",
    )


def read_data(values):
    """The data set of the flags, which must suit --class_weights."""
    dataset = _read_data(values)
    check_weights(values.class_weights, dataset.labels)
    return dataset


def _read_data(values):
    """The data set that --task_name names, or one of the user's own files."""
    if values.task_name in DATASETS:
        given = [name for name in CUSTOM_FLAGS if getattr(values, name)]
        if given:
            raise InputError(
                f"--{given[0]} is for --task_name=csv, tsv and jsonl. Received: "
                f"--task_name={values.task_name}"
            )
        return DATASETS[values.task_name]
    if values.task_name not in FILE_TYPES:
        raise InputError(
            f"--task_name must be one of {', '.join((*DATASETS, *FILE_TYPES))}. "
            f"Received: {values.task_name or 'none'}"
        )
    return custom_dataset(
        values.task_name,
        values.data_dir,
        values.task_type or "single_label",
        Columns(
            values.text_column or "text",
            values.second_column,
            values.label_column or "label",
            values.id_column,
        ),
        _names(values.labels),
        _names(values.metrics),
    )


def _names(text):
    """The names in a list separated by commas; None where no flag was given."""
    return [name.strip() for name in text.split(",")] if text else None


if __name__ == "__main__":
    sys.exit(main())
