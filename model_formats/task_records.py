"""What a fine-tuned model's folder records of its task, and the values that may stand there."""

from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json

# Where a fine-tuned model's folder records its task: its name under this key, and its settings.
SETTINGS_FILE, TASK_KEY = "finetuning.json", "task"

# Fine-tuned task -> a setting that folders of none of the tasks before it have.
TASK_SETTINGS = {
    "question_answering": "start_n_top",
    "multiple_choice": "max_qa_length",
    "classification": "task_type",
    "ner": "labels",
}


class Setting(NamedTuple):
    """A value that a folder may record."""

    kind: type  # str, int, float or bool
    least: float | None = None  # of a number
    most: float | None = None
    needed: bool = False  # whether the value must be there, and may not be null


# The most of a count: no sequence is as long.
MANY = 1_000_000

# Name -> `Setting`; the names are those of the programs' flags. Others are ignored.
SETTINGS = {
    "task_name": Setting(str, needed=True),
    "task_type": Setting(str),
    "text_column": Setting(str),
    "second_column": Setting(str),
    "label_column": Setting(str),
    "id_column": Setting(str),
    "labels": Setting(str),
    "metrics": Setting(str),
    "feature_layers": Setting(str),
    # [CLS], a piece and [SEP].
    "max_seq_length": Setting(int, 3, MANY),
    "doc_stride": Setting(int, 1, MANY),
    "max_query_length": Setting(int, 1, MANY),
    "max_qa_length": Setting(int, 1, MANY),
    "n_best_size": Setting(int, 1, MANY),
    "max_answer_length": Setting(int, 1, MANY),
    "start_n_top": Setting(int, 0, MANY),
    "end_n_top": Setting(int, 0, MANY),
    "null_score_diff_threshold": Setting(float),
    "version_2_with_negative": Setting(bool),
}

# Task -> the settings that its folders must have beside those of every task.
NEEDED = {
    "question_answering": (
        "doc_stride", "max_query_length", "n_best_size", "max_answer_length",
        "null_score_diff_threshold", "version_2_with_negative",
    ),
    "multiple_choice": ("max_qa_length",),
    "ner": ("labels",),
}  # fmt: skip

_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def read_settings_file(path):
    """What a fine-tuned model's folder records, a dict.

    Raises:
        InputError: the file holds something else.
    """
    record = read_json(read_bytes(path), path)
    if not isinstance(record, dict):
        raise InputError(f"{path} must hold an object. Received: {type(record).__name__}")
    return record


def find_task(record, path):
    """The task that a folder records; "pretraining" if it records nothing.

    Args:
        record: what the file holds, a dict.
        path: the file, for messages.

    Raises:
        InputError: there is no such task.
    """
    if not record:
        return "pretraining"
    if TASK_KEY not in record:
        return guess_task(record, path)
    if record[TASK_KEY] not in tuple(TASK_SETTINGS):
        raise InputError(
            f"{path}: task must be one of {', '.join(TASK_SETTINGS)}. "
            f"Received: {record[TASK_KEY]!r:.60}"
        )
    return record[TASK_KEY]


def guess_task(record, path):
    """The task of a folder that version 0.1 wrote, without the task's name.

    Read for one release: the version after the next one refuses such a folder.
    """
    for task, name in TASK_SETTINGS.items():
        if name in record:
            return task
    raise InputError(
        f"{path} must hold one of {', '.join(TASK_SETTINGS.values())}. "
        f"Received: {', '.join(record)}"
    )


def check_settings(task, settings, path):
    """Refuses a record of values that no training writes.

    Args:
        task: a key of `TASK_SETTINGS`.
        settings: what the file holds, a dict.
        path: the file, for messages.

    Raises:
        InputError: a value is missing, of another type, or out of its range.
    """
    for name, setting in SETTINGS.items():
        value = settings.get(name)
        if value is None:
            if setting.needed or name in NEEDED.get(task, ()):
                raise InputError(f"{path} must hold {name}. Received: {', '.join(settings)}")
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = {
            str: isinstance(value, str),
            int: is_number and isinstance(value, int),
            float: is_number and abs(value) < float("inf"),
            bool: isinstance(value, bool),
        }[setting.kind]
        if fits and setting.least is not None:
            fits = setting.least <= value <= setting.most
        if not fits:
            where = "" if setting.least is None else f" from {setting.least} to {setting.most}"
            raise InputError(
                f"{path}: the setting {name} must be {_KINDS[setting.kind]}{where}. "
                f"Received: {value!r:.60}"
            )
