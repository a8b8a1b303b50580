"""Keeps build_vocab from replacing a different vocabulary or learning the same one twice."""

import hashlib
import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.engine.work_folder import describe_differences, describe_inputs
from tokenization.vocab_learning.learn import CONFIG_FILE, REPORT_FILE, VOCABULARY_FILE
from tokenization.vocab_learning.morphemes import kiwi_versions

if TYPE_CHECKING:
    from run_scripts.build_vocab import BuildVocabFlags
    from tokenization.vocab_learning.learn import LearnedVocabulary, LearningSettings

# The key in report.json of everything that determines the vocabulary.
KEY = "made_from"

# Flags that do not affect the vocabulary, or whose effect is recorded instead.
_NOT_DECIDING = (
    "input_file", "input_format", "output_dir", "num_threads", "analyser", "compare", "text",
    "overwrite",
)  # fmt: skip


def make_manifest(
    flags: "BuildVocabFlags", settings: "LearningSettings", files: Sequence[str]
) -> dict[str, Any]:
    """Returns everything that determines a vocabulary as a flat dict of JSON values."""
    deciding = {f"--{k}": v for k, v in vars(flags).items() if k not in _NOT_DECIDING}
    return {
        **deciding,
        "--input_format": flags.input_format,
        "analyser": settings.analyser,
        **(kiwi_versions() if settings.analyser == "kiwi" else {}),
        "unicode": unicodedata.unidata_version,
        **describe_inputs(files),
        "input files": [os.path.abspath(path) for path in files],
    }


def add_manifest(learned: "LearnedVocabulary", manifest: Mapping[str, Any]) -> None:
    """Records in the report of a `LearnedVocabulary` what it was made from."""
    content = "".join(f"{piece}\n" for piece in learned.pieces).encode("utf-8")
    learned.report[KEY] = {
        **manifest,
        "vocabulary_sha256": hashlib.sha256(content).hexdigest(),
        "tokenizer": learned.config,
    }


def is_up_to_date(folder: str, manifest: Mapping[str, Any], overwrite: bool) -> bool:
    """Returns True if the folder holds this vocabulary; a different one needs `overwrite`."""
    found = {name: _read(os.path.join(folder, name)) for name in _NAMES}
    found = {name: content for name, content in found.items() if content is not None}
    if not found:
        return False
    problem = _problem(found, manifest)
    if problem is None:  # if files are missing, a run was killed before it had written all of them
        return len(found) == len(_NAMES)
    if not overwrite:
        raise InputError(
            "--output_dir must hold no other vocabulary, unless --overwrite is given. Received: "
            f"{folder}: {problem}"
        )
    return False


_NAMES = (VOCABULARY_FILE, CONFIG_FILE, REPORT_FILE)


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _problem(found, manifest):
    """Describes how files differ from the vocabulary to be learned; None if they do not."""
    report = _as_json(found.get(REPORT_FILE, b""))
    made_from = report.get(KEY) if isinstance(report, dict) else None
    if not isinstance(made_from, dict):
        return f"{', '.join(found)}, and no report of what it was learned from"
    made_from = dict(made_from)
    checksum, tokenizer = (made_from.pop(name, None) for name in ("vocabulary_sha256", "tokenizer"))
    if differences := describe_differences(made_from, manifest):
        return "; ".join(differences)
    vocabulary = found.get(VOCABULARY_FILE)
    if vocabulary is not None and hashlib.sha256(vocabulary).hexdigest() != checksum:
        return f"{VOCABULARY_FILE} was changed since it was learned"
    if CONFIG_FILE in found and _as_json(found[CONFIG_FILE]) != tokenizer:
        return f"{CONFIG_FILE} was changed since it was written"
    return None


def _as_json(content):
    try:
        return parse_json(content.decode("utf-8"))
    except ValueError:
        return None
