"""Keeps build_vocab from replacing a different vocabulary or learning the same one twice."""

import json
import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from create_pretraining_data.engine.work_folder import describe_inputs
from tokenization.vocab_learning.learn import CONFIG_FILE, REPORT_FILE, VOCABULARY_FILE
from tokenization.vocab_learning.morphemes import kiwi_versions

if TYPE_CHECKING:
    from run_scripts.build_vocab import BuildVocabFlags
    from tokenization.vocab_learning.learn import LearningSettings

# The key in report.json of everything that determines the vocabulary.
KEY = "made_from"

# Flags that do not affect the vocabulary, or whose effect is recorded instead.
_NOT_DECIDING = (
    "input_file", "input_format", "output_dir", "num_threads", "analyser", "compare", "text",
    "overwrite", "strict_utf8",
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


def is_up_to_date(folder: str, manifest: Mapping[str, Any]) -> bool:
    """Returns True if the folder holds the vocabulary of this manifest, False if it holds none.

    Also False if a run was killed before it had written all files. Another vocabulary is an
    `InputError`.
    """
    found = [name for name in _NAMES if os.path.exists(os.path.join(folder, name))]
    if found and _made_from(os.path.join(folder, REPORT_FILE)) != manifest:
        raise InputError(
            "--output_dir must hold no other vocabulary, unless --overwrite is given. Received: "
            f"{folder}, which holds {', '.join(found)} of other text, settings or versions"
        )
    return len(found) == len(_NAMES)


_NAMES = (VOCABULARY_FILE, CONFIG_FILE, REPORT_FILE)


def _made_from(path):
    """Returns what a report says that its vocabulary was made from; None if it says nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)[KEY]
    except (OSError, ValueError, LookupError, TypeError):
        return None
