"""Finds the files of a corpus in paths, globs, folders of texts and saved data sets."""

import os

from bert_common.errors import InputError
from bert_common.folders import check_utf8, read_bytes
from bert_common.json_text import read_json
from create_pretraining_data.engine.columns import saved_dataset_files
from model_formats.encoders import ENCODERS
from run_scripts.flags.paths import first_of, match_paths

# The endings of files that are read in a folder; the first three also with .gz.
_LINES = (".txt", ".jsonl", ".ndjson")
TEXT_NAMES = (*_LINES, *(f"{end}.gz" for end in _LINES), ".parquet", ".arrow")

# A folder with one of these holds a vocabulary or a model, so its vocab.txt is not text.
_MODEL_FILES = ("tokenizer_config.json", "config.json", *(e.config_file for e in ENCODERS.values()))
_VOCABULARY = "vocab.txt"

# Where `datasets` describes a saved data set, and a folder of several splits.
_STATE, _SPLITS = "state.json", "dataset_dict.json"
_TRAIN = "train"


def find_texts(patterns: str) -> list[str]:
    """Returns the text files of --input_file, a comma-separated list of paths, globs and folders.

    A folder stands for the files in it and its subfolders that end as in `TEXT_NAMES`, except for
    hidden files, vocabularies, and files in model folders or behind links to folders. A data set
    that Hugging Face's `datasets` saved stands for its Arrow files; one with several splits, for
    the train split's. Prints what it takes from a folder. Raises an `InputError` if a part of the
    list matches nothing, a pipe or a folder without text.
    """
    files: list[str] = []
    for path in match_paths(patterns, "input_file", folders=True):
        found = [path]
        if os.path.isdir(path):
            found, others = _texts_in(path)
            if not found:
                raise InputError(
                    "--input_file must name files, or a folder with files that end in "
                    f"{', '.join(TEXT_NAMES)}. Received: {path}, a folder without one"
                )
            print(_summary(path, found, others))
        for name in found:
            check_utf8(name, "the name of a file of --input_file")
        files += found
    return files


def _texts_in(folder):
    """Returns the text files of a folder in sorted order, and the other files."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    if _SPLITS in names:
        return _texts_in(_choose_split(folder))
    if _STATE in names:
        path = os.path.join(folder, _STATE)
        return saved_dataset_files(folder, read_json(read_bytes(path), path)), []
    texts, others = [], []
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            # A link may lead to an enclosing folder.
            is_left_out = _holds_model(path) or os.path.islink(path)
            more_texts, more_others = ([], [path]) if is_left_out else _texts_in(path)
            texts += more_texts
            others += more_others
        elif name == _VOCABULARY and _holds_model(folder):  # build_vocab wrote it beside the text
            others.append(path)
        elif os.path.isfile(path) and name.lower().endswith(TEXT_NAMES):
            texts.append(path)
        else:
            others.append(path)
    return texts, others


def _holds_model(folder):
    return any(os.path.exists(os.path.join(folder, name)) for name in _MODEL_FILES)


def _choose_split(folder):
    path = os.path.join(folder, _SPLITS)
    content = read_json(read_bytes(path), path)
    splits = content.get("splits") if isinstance(content, dict) else None
    if not isinstance(splits, list) or not all(isinstance(name, str) for name in splits):
        raise InputError(f"{path} must have a list of splits. Received: {splits!r:.80}")
    chosen = splits[0] if len(splits) == 1 else _TRAIN
    if chosen in splits and not os.path.isdir(os.path.join(folder, chosen)):
        raise InputError(
            f"{path} must name folders beside it. Received: {chosen}, which is missing"
        )
    if chosen not in splits:
        raise InputError(
            f"{folder} must have a split named {_TRAIN}; otherwise name the folder of one in it. "
            f"Received: {', '.join(splits)}"
        )
    if len(splits) > 1:
        print(f"{folder}: of the splits {', '.join(splits)}, {chosen} is read")
    return os.path.join(folder, chosen)


def _summary(folder, texts, others):
    line = f"{folder}: {len(texts):,} file{'s' * (len(texts) != 1)} of text"
    left_out = [os.path.relpath(path, folder) for path in others]
    return f"{line}; left out: {first_of(left_out)}" if others else line
