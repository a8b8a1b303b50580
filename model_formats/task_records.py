"""Checks what a fine-tuned model's folder records, by a table of names, types and ranges."""

from typing import NamedTuple

from bert_common.errors import InputError


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

_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def check_settings(settings, path, needed=()):
    """Refuses a record of values that no training writes.

    Args:
        settings: what the file holds, a dict.
        path: the file, for messages.
        needed: names that must be there beside those that every task has.

    Raises:
        InputError: a value is missing, of another type, or out of its range.
    """
    for name, setting in SETTINGS.items():
        value = settings.get(name)
        if value is None:
            if setting.needed or name in needed:
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
