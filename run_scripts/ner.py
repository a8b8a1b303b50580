"""The program run_ner: fine-tunes a pre-trained model to find named entities."""

import dataclasses
import re
import sys

from bert_common.errors import InputError
from finetuning.ner.data import FORMATS, make_ner_dataset, read_dataset_split
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags.declaration import flag
from run_scripts.flags.finetune import FinetuneFlags, head_options
from run_scripts.flags.parser import run_program

# The flags that a fine-tuned model's folder records.
TASK_FLAGS = ("task_name", "labels", "feature_layers", "max_seq_length")


@dataclasses.dataclass(frozen=True)
class NerFlags(FinetuneFlags):
    """Fine-tunes BERT or ALBERT to find named entities, or to tag tokens in any other way.

    With --do_eval or --do_predict alone, only --output_dir (of an earlier training) and --data_dir
    must be given: task, sizes and tokenizer are stored beside the weights."""

    task_name: str = flag(
        None,
        f"The format of the files, one of {', '.join(FORMATS)}; conll stands for train.txt, "
        "dev.txt and test.txt with a token and its tag a line, B-X, I-X or O.",
    )
    labels: str = flag(
        None,
        "All tags, separated by commas. Without it: the format's, or those in train.",
    )


def main(argv=None):
    """The console script and the launcher; returns the exit status."""
    return run_program(find_entities, NerFlags, argv)


def find_entities(values):
    """Runs the program."""
    finetune(values, Program(TASK_FLAGS, read_data, read_dataset_split, make_task))


def read_data(values):
    """The format of the flags, with its tags."""
    if values.task_name not in FORMATS:
        raise InputError(
            f"--task_name must be one of {', '.join(FORMATS)}. "
            f"Received: {values.task_name or 'none'}"
        )
    labels = tuple(values.labels.split(",")) if values.labels else ()
    odd = [label for label in labels if not re.fullmatch("O|[BI]-.+", label)]
    if odd or len(set(labels)) < len(labels):
        raise InputError(
            f"--labels must be O, B-X and I-X of each kind X, each once. Received: {values.labels}"
        )
    return make_ner_dataset(FORMATS[values.task_name], values.data_dir, labels)


def make_task(values, dataset, config, tokenizer):
    """The task as a `NamedEntityRecognition`."""
    from finetuning.ner.task import NamedEntityRecognition

    return NamedEntityRecognition(dataset, tokenizer, *head_options(values, config))


if __name__ == "__main__":
    sys.exit(main())
