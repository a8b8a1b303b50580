"""Reads and checks the task record in a fine-tuned model's folder."""

from collections.abc import Mapping
from typing import Any

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from finetuning.tasks import TASKS, Task

# The file in which a fine-tuned model's folder records its settings, and the key of its task name.
SETTINGS_FILE, TASK_KEY = "finetuning.json", "task"

# The tasks of version 0.1 -> a setting that no task listed before it records.
SIGNS = {
    "question_answering": "start_n_top",
    "multiple_choice": "max_qa_length",
    "classification": "task_type",
    "ner": "labels",
}

_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def read_settings_file(path: str) -> dict[str, Any]:
    """Reads the task record of a fine-tuned model's folder."""
    record = read_json(read_bytes(path), path)
    if not isinstance(record, dict):
        raise InputError(f"{path} must hold an object. Received: {type(record).__name__}")
    return record


def find_task(record: Mapping[str, Any], path: str) -> str:
    """Returns the task that a folder records, "pretraining" if it records nothing."""
    if not record:
        return "pretraining"
    if TASK_KEY not in record:
        # Version 0.1 wrote no name. The version after next will reject such folders.
        for task, name in SIGNS.items():
            if name in record:
                return task
        raise InputError(
            f"{path} must hold one of {', '.join(SIGNS.values())}. Received: {', '.join(record)}"
        )
    if record[TASK_KEY] not in tuple(TASKS):
        raise InputError(
            f"{path}: task must be one of {', '.join(TASKS)}. Received: {record[TASK_KEY]!r:.60}"
        )
    return record[TASK_KEY]


def check_settings(task: Task, settings: Mapping[str, Any], path: str) -> None:
    """Raises an `InputError` if recorded settings have values that training never writes."""
    for name, setting in task.settings.items():
        value = settings.get(name)
        if value is None:
            if setting.needed:
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
