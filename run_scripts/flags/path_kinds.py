"""Checks what lies at the paths that flags name, before a program begins."""

import dataclasses

from bert_common.errors import InputError
from bert_common.folders import kind_of_path
from run_scripts.flags.help_groups import COMPATIBILITY, TPU, group_of
from run_scripts.flags.paths import split_list

FILE, FOLDER, NOTHING = "a file", "a folder", "nothing there"

# What each flag takes. Lists of files are checked where they are expanded, and what training
# programs find in --data_dir where it is read.
_FILES = (
    "vocab_file", "spm_model_file", "bert_config_file", "albert_config_file", "config_file",
    "card_file", "add_tokens", "data_file", "dev_file", "test_file",
)  # fmt: skip
_FOLDERS = ("model_dir", "tokenizer_dir", "data_dir", "tasks_dir")
_NEW_FOLDERS = ("output_dir", "export_dir", "docs_dir", "compilation_cache_dir", "projector_dir")
_CACHES = ("train_feature_file", "predict_feature_file")
# The prefix of a checkpoint's files is no path of its own.
_WEIGHTS = ("init_checkpoint", "begin_with", "compare", "tokenizers")
TAKEN = {
    **dict.fromkeys(_FILES, (FILE,)),
    **dict.fromkeys(_FOLDERS, (FOLDER,)),
    **dict.fromkeys(_NEW_FOLDERS, (FOLDER, NOTHING)),
    **dict.fromkeys(_CACHES, (FILE, NOTHING)),
    **dict.fromkeys(_WEIGHTS, (FILE, FOLDER, NOTHING)),
}

# The flags of lists, separated by commas.
_LISTS = ("config_file",)

# Google's command lines name both; the second decides.
_UNUSED_WITH = {"vocab_file": "spm_model_file"}


def check_path_kinds(values):
    """Refuses a path at which lies something else than its flag takes, such as a pipe.

    Raises:
        InputError: names the flag, the path and what is there.
    """
    for field in dataclasses.fields(values):
        path, about = getattr(values, field.name), field.metadata
        group = group_of(field.name, about["help"], about["required"])
        if not path or field.name not in TAKEN or about["choices"] or group in (COMPATIBILITY, TPU):
            continue
        if getattr(values, _UNUSED_WITH.get(field.name, ""), None):
            continue
        for part in split_list(path) if field.name in _LISTS else [path]:
            kind, taken = kind_of_path(part), TAKEN[field.name]
            if kind not in taken:
                must = " or ".join(name for name in taken if name != NOTHING)
                raise InputError(f"--{field.name} must be {must}. Received: {part}, {kind}")
