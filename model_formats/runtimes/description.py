"""Describes an exported file for its users, with inputs, outputs, labels, sizes and tokenizer."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from bert_common.atomic_write import write_json
from finetuning.tasks import TASKS
from model_formats.loaded_model import LoadedModel
from model_formats.runtimes.ids_graph import input_axes, input_names
from tokenization import save_tokenizer
from tokenization.loading import Tokenizer

DESCRIPTION_FILE = "model.json"


def describe(loaded: LoadedModel, graph: Any, precision: str) -> dict[str, Any]:
    """Returns, for JSON, what users of an exported graph need to know.

    Open sizes are given by the names of their axes.
    """
    outputs = graph.get_concrete_function().structured_outputs
    axes = input_axes(loaded)
    specs = zip(input_names(loaded), graph.input_signature, strict=True)
    return {
        "task": loaded.task,
        "model_type": loaded.model_type,
        "precision": precision,
        "inputs": {name: _tensor(spec, axes) for name, spec in specs},
        "outputs": {name: _tensor(value, axes) for name, value in sorted(outputs.items())},
        "labels": list(loaded.labels),
        "settings": _settings(loaded),
        "trained_positions": loaded.trained_positions,
        "config": dataclasses.asdict(loaded.config),
    }


def write_files(
    directory: str, description: Mapping[str, Any], tokenizer: Tokenizer | None
) -> None:
    """Writes `DESCRIPTION_FILE`, and the tokenizer's files if there is one."""
    write_json(os.path.join(directory, DESCRIPTION_FILE), description)
    if tokenizer is not None:
        save_tokenizer(tokenizer, directory)


def _settings(loaded):
    """Returns the recorded settings of the task, and for a classifier its task_type."""
    if loaded.task not in TASKS:
        return {}
    task = TASKS[loaded.task]
    recorded = {name: loaded.settings.get(name) for name in task.settings}
    if task.labels == "classes":
        # The folder omits it for a built-in data set and for the default, so it is the model's.
        kind = "multi_label" if loaded.model.multi_label else "single_label"
        recorded["task_type"] = kind if loaded.labels else "regression"
    return {name: value for name, value in recorded.items() if value is not None}


def _tensor(value, axes):
    """Describes a tensor's type and shape; open sizes have the names of the inputs' axes."""
    shape = [axes[i] if size is None else size for i, size in enumerate(value.shape)]
    return {"dtype": value.dtype.name, "shape": shape}
