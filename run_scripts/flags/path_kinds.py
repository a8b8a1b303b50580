"""Checks what lies at the paths that flags name, before a program begins."""

import dataclasses
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_common.folders import kind_of_path
from run_scripts.flags.paths import split_list

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# What `flag(takes=…)` allows at a path.
FILE, FOLDER, NOTHING = "a file", "a folder", "nothing there"

# Google's command lines name both; the second decides.
_UNUSED_WITH = {"vocab_file": "spm_model_file"}


def check_path_kinds(values: "DataclassInstance") -> None:
    """Refuses a path at which lies something else than its flag takes, such as a pipe.

    Lists of files are checked where they are expanded, and what training programs find in
    --data_dir where it is read.
    """
    for field in dataclasses.fields(values):
        path, taken = getattr(values, field.name), field.metadata["takes"]
        if not path or not taken or getattr(values, _UNUSED_WITH.get(field.name, ""), None):
            continue
        for part in split_list(path) if field.metadata["is_list"] else [path]:
            kind = kind_of_path(part)
            if kind not in taken:
                must = " or ".join(name for name in taken if name != NOTHING)
                raise InputError(f"--{field.name} must be {must}. Received: {part}, {kind}")
