"""The run_ner program, which fine-tunes a pre-trained model to find named entities."""

import dataclasses
import functools
import sys
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from finetuning.labels import spell_labels
from finetuning.ner.data import FORMATS, NerDataset, make_ner_dataset, tags_of_kinds
from finetuning.ner.labels import odd_tags
from finetuning.ner.untagged import (
    DESCRIPTIONS,
    FORMS,
    USUAL_ENDING,
    add_untagged,
    count_kinds,
    read_dataset_split,
)
from finetuning.settings import split_names
from finetuning.tasks import TASKS
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags import groups
from run_scripts.flags.declaration import redeclare
from run_scripts.flags.finetune import TextFlags, head_options, split_of_predicted_file
from run_scripts.flags.parser import run_program

if TYPE_CHECKING:
    from finetuning.ner.task import NamedEntityRecognition


@dataclasses.dataclass(frozen=True)
class NerFlags(TextFlags):
    """Fine-tunes BERT, ALBERT or ELECTRA to find named entities, or to tag tokens in any other way.

    To evaluate or predict after training, give --do_eval or --do_predict, --data_dir or
    --predict_file, and the --output_dir of the training run."""

    EXAMPLE = (
        "--task_name=klue-ner --data_dir=data/klue-ner-v1.1 --output_dir=output/ner "
        "--albert_config_file=output/model/albert_config.json --tokenizer_dir=data/vocab "
        "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_eval"
    )

    data_dir: str = redeclare(
        TextFlags,
        "data_dir",
        help="The folder with the task's files. Not needed if you only tag --predict_file.",
    )
    predict_file: str = redeclare(
        TextFlags,
        "predict_file",
        help="The file whose text --do_predict tags: one sentence per line, or tokens as in the "
        "training file, with or without tags. Default: the split named by --predict_split.",
    )
    predict_format: str = groups.PREDICTION.flag(
        "auto",
        "The format of --predict_file. tagged: tokens with tags, as for training. tokens: tokens "
        "without tags. text: one sentence per line. auto: detected.",
        choices=("auto", *FORMS),
    )
    task_name: str = groups.TASK.optional(
        f"The data set: {', '.join(FORMATS)}. conll stands for your own data: train.txt, dev.txt "
        "and test.txt in --data_dir, with one token and its tag (B-X, I-X or O) per line."
    )
    labels: str = groups.COLUMNS.optional(
        "All tags, comma-separated. Default: the tags defined by --task_name, else the tags in "
        "the training file.",
        convert=spell_labels,
    )


def find_entities(values: NerFlags) -> None:
    """Checks run_ner's own flags and runs the program."""
    predicted = split_of_predicted_file(values, USUAL_ENDING)
    if not values.data_dir and (values.do_train or values.do_eval or not values.predict_file):
        raise InputError(
            "--data_dir must be given, or --do_predict with --predict_file. Received: neither"
        )
    finetune(values, PROGRAM, **predicted)


def read_data(values: NerFlags) -> NerDataset:
    """Returns the data set that the flags name, with its tags."""
    if values.task_name not in FORMATS:
        raise InputError(
            f"--task_name must be one of {', '.join(FORMATS)}. "
            f"Received: {values.task_name or 'none'}"
        )
    form, labels = FORMATS[values.task_name], split_names(values.labels)
    odd = odd_tags(labels)
    if labels and (values.do_train or values.do_eval):  # predicting text needs no I-X
        odd += {*tags_of_kinds({label[2:] for label in labels} - {""})} - {*labels}
    if odd or len(set(labels)) < len(labels) or (labels and "O" not in labels):
        raise InputError(
            f"--labels must be O, B-X and I-X of each kind X, each once. Received: {values.labels}"
        )
    if values.data_dir and (values.do_train or values.do_eval or not values.predict_file):
        dataset = make_ner_dataset(form, values.data_dir, labels)
    else:  # only --predict_file is tagged
        dataset = NerDataset(form, labels or form.tags, {})
    if not dataset.tags:  # as a model has none that is not fine-tuned
        raise InputError("--labels must be given where the model's folder has none. Received: none")
    dataset = add_untagged(dataset, values.data_dir, values.predict_file, values.predict_format)
    for file in dataset.untagged:
        print(f"{file.path}: read as {DESCRIPTIONS[file.form]}")
    return dataset


def make_task(job: DownstreamJob[NerFlags, NerDataset]) -> "NamedEntityRecognition":
    """Returns the `NamedEntityRecognition` of a `DownstreamJob`."""
    from finetuning.ner.task import NamedEntityRecognition

    return NamedEntityRecognition(job.dataset, job.tokenizer, **head_options(job.flags, job.config))


PROGRAM = Program(TASKS["ner"], read_data, read_dataset_split, make_task, count_classes=count_kinds)


main = functools.partial(run_program, find_entities, NerFlags)

if __name__ == "__main__":
    sys.exit(main())
