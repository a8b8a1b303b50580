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

# The largest number that a setting may be, as for flags.
LARGEST = 2**31 - 1

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
    """Raises an `InputError` if recorded settings are not those that training writes."""
    for name, setting in task.settings.items():
        if setting.needed and settings.get(name) is None:
            raise InputError(f"{path} must hold {name}. Received: {', '.join(settings)}")
    check_values(task, settings, path)


def check_values(task: Task, settings: Mapping[str, Any], path: str) -> None:
    """Raises an `InputError` if a recorded setting has a value that training never writes."""
    for name, setting in task.settings.items():
        value = settings.get(name)
        if value is None:
            continue
        must = _KINDS[setting.kind]
        fits = type(value) in ((int, float) if setting.kind is float else (setting.kind,))
        if setting.choices:
            must = " or ".join(setting.choices)
            fits = value in setting.choices
        if setting.least is not None:
            must += f" from {setting.least} to {LARGEST}"
            fits = fits and setting.least <= value <= LARGEST
        if not fits:
            raise InputError(f"{path}: the setting {name} must be {must}. Received: {value!r:.60}")
