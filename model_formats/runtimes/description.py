"""Writes what travels with an exported file: inputs, outputs, labels, sizes, the tokenizer."""

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
    """Describes for JSON what somebody must know who has only the file of a graph.

    A size that the file leaves open has its name among the axes.
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


def write_description(
    directory: str, description: Mapping[str, Any], tokenizer: Tokenizer | None
) -> None:
    """Writes `DESCRIPTION_FILE`, and the tokenizer's files if there is one."""
    write_json(os.path.join(directory, DESCRIPTION_FILE), description)
    if tokenizer is not None:
        save_tokenizer(tokenizer, directory)


def _settings(loaded):
    """What the folder records of the task; of a classifier also what its logits mean."""
    if loaded.task not in TASKS:
        return {}
    task = TASKS[loaded.task]
    recorded = {name: loaded.settings.get(name) for name in task.settings}
    if task.labels == "classes":
        # From the model, as a folder may record none: a built-in data set's, and the default.
        kind = "multi_label" if loaded.model.multi_label else "single_label"
        recorded["task_type"] = kind if loaded.labels else "regression"
    return {name: value for name, value in recorded.items() if value is not None}


def _tensor(value, axes):
    """The type and shape of a tensor, whose open sizes are called as the inputs' are."""
    shape = [axes[i] if size is None else size for i, size in enumerate(value.shape)]
    return {"dtype": value.dtype.name, "shape": shape}
