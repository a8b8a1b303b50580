"""Records how a model was trained, for the model card of an export.

The file is a list of stages, the earliest first: pre-training, perhaps pre-training on more text,
fine-tuning, averaging. A stage is an object with "program", "settings" and, for pre-training,
"corpus" and, if known, "objective". This is the sentence objective "nsp", "sop" or "none", or the
name of a pre-training objective without one, "rtd".
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from model_formats.pretraining_objectives import OBJECTIVES

# One entry of training.json.
Stage = dict[str, Any]

TRAINING_FILE = "training.json"

# The settings that are paths.
PATHS = ("teacher_dir",)

# The number of trained positions has a file of its own, as some tools reject configurations with
# unknown keys.
POSITIONS_FILE, POSITIONS_KEY = "pretraining.json", "trained_positions"

# The counts in a description of records that describe its text.
CORPUS_COUNTS = ("documents", "sentences", "words", "pieces", "examples")


def read_stages(folder: str) -> list[Stage]:
    """Reads the stages that a folder records; returns an empty list without a record."""
    path = os.path.join(folder, TRAINING_FILE)
    if not os.path.exists(path):
        return []
    stages = read_json(read_bytes(path), path)
    if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
        raise InputError(f"{path} must hold a list of objects. Received: something else")
    return stages


def write_stages(folder: str, stages: Sequence[Stage]) -> None:
    """Writes the record of the stages, unless it would be empty."""
    if stages:
        write_json(os.path.join(folder, TRAINING_FILE), stages)


def without_paths(stages: Sequence[Stage]) -> list[Stage]:
    """Returns stages for an export, which may be published: of a path only its last name."""
    published = []
    for stage in stages:
        settings = stage.get("settings")
        if isinstance(settings, dict):
            found = {name: settings[name] for name in PATHS if isinstance(settings.get(name), str)}
            names = {k: os.path.basename(os.path.normpath(path)) for k, path in found.items()}
            stage = {**stage, "settings": {**settings, **names}}
        published.append(stage)
    return published


def read_trained_positions(folder: str) -> int | None:
    """Reads the number of trained positions of a folder; returns None without a record."""
    path = os.path.join(folder, POSITIONS_FILE)
    if not os.path.exists(path):
        return None
    content = read_json(read_bytes(path), path)
    positions = content.get(POSITIONS_KEY) if isinstance(content, dict) else None
    if type(positions) is not int or positions < 1:
        raise InputError(f"{path} must hold {POSITIONS_KEY}, from 1 on. Received: {content!r}")
    return positions


def write_trained_positions(folder: str, positions: int | None) -> None:
    """Writes the number of trained positions; removes an earlier model's record if it is None."""
    path = os.path.join(folder, POSITIONS_FILE)
    if positions is not None:
        write_json(path, {POSITIONS_KEY: positions})
    elif os.path.exists(path):
        os.remove(path)


def trained_objective(stages: Sequence[Stage]) -> str | None:
    """Returns the "objective" of the latest pre-training stage, or None if unknown."""
    objective = _latest_training(stages).get("objective")
    return objective if objective in ("nsp", "sop", "none", *OBJECTIVES) else None


def trained_by(stages: Sequence[Stage]) -> str | None:
    """Returns the --objective of the latest pre-training stage, or None if unknown."""
    settings = _latest_training(stages).get("settings")
    objective = settings.get("objective") if isinstance(settings, dict) else None
    return objective if objective in OBJECTIVES else None


def _latest_training(stages):
    return next((s for s in reversed(stages) if s.get("program") == "pre-training"), {})


def add_counts(descriptions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Sums the counts of several data sets, omitting counts that any of them lacks."""
    counts = {}
    for name in CORPUS_COUNTS:
        values: list[Any] = [description.get(name) for description in descriptions]
        if values and all(type(value) is int for value in values):
            counts[name] = sum(values)
    return counts
