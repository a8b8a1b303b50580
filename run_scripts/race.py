"""The run_race program, which fine-tunes a pre-trained model on multiple-choice questions."""

import dataclasses
import functools
import operator
import os
import sys
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from finetuning.multiple_choice.data import (
    RACE_LEVELS,
    ChoiceDataset,
    check_lengths,
    find_race,
    read_choices,
    read_dataset_split,
    read_race,
)
from finetuning.readers import SPLITS
from finetuning.tasks import TASKS
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags import groups
from run_scripts.flags.declaration import PerModel, redeclare
from run_scripts.flags.distillation import TeacherFlags
from run_scripts.flags.finetune import TRAIN_PART, FinetuneFlags, reads_split
from run_scripts.flags.parser import run_program

if TYPE_CHECKING:
    from finetuning.multiple_choice.task import MultipleChoice

SETTINGS = TASKS["multiple_choice"].settings

shared = functools.partial(redeclare, FinetuneFlags)


@dataclasses.dataclass(frozen=True)
class RaceFlags(TeacherFlags, FinetuneFlags):
    """Fine-tunes BERT, ALBERT or ELECTRA to answer multiple-choice questions: RACE, or your files.

    Without --do_train, --do_eval and --do_predict, the program trains and evaluates. To evaluate or
    predict after training, give --do_eval or --do_predict, --data_dir and the --output_dir of the
    training run."""

    EXAMPLE = (
        "--data_dir=data/RACE --output_dir=output/race "
        "--albert_config_file=albert_base/albert_config.json "
        "--spm_model_file=albert_base/30k.model --init_checkpoint=albert_base/model.ckpt-best"
    )

    task_name: str = groups.TASK.setting(
        SETTINGS["task_name"],
        "What --data_dir holds. race: RACE's folders train, dev and test. jsonl: train.jsonl, "
        "dev.jsonl and test.jsonl, with one object per line. Each object has context, question, "
        "options (the same number in all objects) and label (an index from 0, or a letter).",
        convert=str.lower,  # as google-research/albert, for --task_name=RACE
    )
    high_only: bool = groups.COLUMNS.flag(
        False, "Use only the high-school questions of RACE.", not_with=("middle_only",)
    )
    middle_only: bool = groups.COLUMNS.flag(False, "Use only the middle-school questions of RACE.")
    do_train: bool = shared("do_train", default=None)
    do_eval: bool = shared("do_eval", default=None)
    do_predict: bool = shared("do_predict", default=None)
    max_seq_length: int = groups.ROWS.setting(
        SETTINGS["max_seq_length"],
        "The maximum number of tokens in a passage, question and option together, including "
        "special tokens. A passage that does not fit is cut at the end.",
    )
    max_qa_length: int = groups.ROWS.setting(
        SETTINGS["max_qa_length"],
        "The maximum number of tokens in a question and an option together; longer pairs lose "
        "tokens from the start.",
    )
    learning_rate: float = shared("learning_rate", default=1e-5)
    num_train_epochs: float = shared(
        "num_train_epochs",
        default=PerModel(None),
        help="The number of passes over the training examples. Default: --train_step sets the "
        "number of updates.",
    )
    train_step: int = shared("train_step", default=PerModel(12000))
    warmup_proportion: float = shared(
        "warmup_proportion",
        default=PerModel(None),
        help="The share of updates used for warm-up. Default: --warmup_step sets the number of "
        "warm-up updates.",
    )
    warmup_step: int = shared("warmup_step", default=PerModel(1000))
    save_checkpoints_steps: int = shared("save_checkpoints_steps", default=100)
    num_keep_checkpoint: int = groups.COMPATIBILITY.optional(
        "Another name for --keep_checkpoint_max.", least=0
    )
    dropout_prob: float = groups.COMPATIBILITY.optional(
        "Another name for --classifier_dropout.", least=0, below=1
    )
    train_file: str = groups.COMPATIBILITY.unused(
        "Accepted but has no effect: the examples are read from --data_dir."
    )
    eval_file: str = groups.COMPATIBILITY.unused()
    predict_file: str = groups.COMPATIBILITY.unused()

    @classmethod
    def as_meant(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Turns on training and evaluation if no flag says what to do; resolves flags' aliases."""
        values = super().as_meant(given)
        if values["do_train"] is values["do_eval"] is values["do_predict"] is None:
            values |= {"do_train": True, "do_eval": True}
        names = {"num_keep_checkpoint": "keep_checkpoint_max", "dropout_prob": "classifier_dropout"}
        return values | {meant: values[n] for n, meant in names.items() if values[n] is not None}


def answer_multiple_choice(values: RaceFlags) -> None:
    """Checks run_race's own flags and runs the program."""
    finetune(values, PROGRAM)


def read_data(values: RaceFlags) -> ChoiceDataset:
    """Reads the questions of the splits that the flags need and that exist."""
    check_lengths(values.max_seq_length, values.max_qa_length)
    needed = [split for split in SPLITS if reads_split(values, split)]
    present = [split for split in needed if find_split_path(values, split)]
    questions = {split: read_split(values, split) for split in present}
    if not questions or (values.do_train and "train" not in questions):
        read_split(values, needed[0])  # raises an error that names what is missing
    for split, choices in questions.items():
        without = [choice.id for choice in choices if choice.label is None]
        trained = values.do_train and split == "train"
        # A split with missing labels is not evaluated on, so unless all are missing it is an error.
        used = {"dev": values.do_eval or values.eval_every_steps, "test": values.do_eval}
        measured = values.eval_on != TRAIN_PART and used.get(split)
        if without and (trained or (measured and len(without) < len(choices))):
            raise InputError(
                f"{split} must have a label for every question{'' if trained else ', or none'}. "
                f"Received: {len(without):,} of {len(choices):,} without, such as {without[0]}"
            )
    return ChoiceDataset(questions)


def find_split_path(values: RaceFlags, split: str) -> str | None:
    """Returns the path of a split, or None if it does not exist."""
    if values.task_name == "race":
        return find_race(values.data_dir, split)
    path = os.path.join(values.data_dir, f"{split}.jsonl")
    return path if os.path.exists(path) else None


def read_split(values: RaceFlags, split: str) -> list[Any]:
    """Reads the questions of a split."""
    if values.task_name != "race":
        return read_choices(os.path.join(values.data_dir, f"{split}.jsonl"))
    levels = [
        level
        for level, other in zip(RACE_LEVELS, (values.high_only, values.middle_only), strict=True)
        if not other
    ]
    return read_race(values.data_dir, split, levels)


def make_task(job: DownstreamJob[RaceFlags, ChoiceDataset]) -> "MultipleChoice":
    """Returns the `MultipleChoice` of a `DownstreamJob`."""
    from finetuning.multiple_choice.task import MultipleChoice

    flags = job.flags
    return MultipleChoice(
        job.dataset,
        job.tokenizer,
        flags.max_seq_length,
        flags.max_qa_length,
        flags.classifier_dropout,
    )


PROGRAM = Program(
    TASKS["multiple_choice"],
    read_data,
    read_dataset_split,
    make_task,
    uses_libraries=False,
    shared_text=operator.attrgetter("context"),
    texts=operator.attrgetter("context", "question", "options"),
)


main = functools.partial(run_program, answer_multiple_choice, RaceFlags)

if __name__ == "__main__":
    sys.exit(main())
