"""Derives the task settings of a fine-tuned transformers folder from its config.json.

Settings have the names of the fine-tuning programs' flags. config.json gives head and labels. How
texts are truncated, only this project's exports say, under `SETTINGS_KEY`; in other folders those
settings have the programs' defaults.
"""

from collections.abc import Mapping
from typing import Any

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from finetuning.classification.custom_data import MAX_LABELS
from finetuning.ner.labels import iob2_tag
from finetuning.tasks import ENCODER, TASKS, Task
from model_formats.transformers_files.sentence_modules import SentenceModules

# problem_type of a classifier -> task_type.
TYPES = {
    "single_label_classification": "single_label",
    "multi_label_classification": "multi_label",
    "regression": "regression",
    None: "single_label",
}

# vLLM's key of config.json for the sizes to which vectors may be cut, including H.
# sentence-transformers has truncate_dim instead, one size to which it cuts every vector.
SIZES_KEY = "matryoshka_dimensions"

# Our key of config.json for the settings that transformers has no keys for. transformers keeps it.
SETTINGS_KEY = "finetuning"

# Keys of an ELECTRA for multiple choice -> the values that our head supports, and transformers'
# default for files without the key.
SUMMARY = {"summary_type": (("first",), "first"), "summary_activation": (("", None), "gelu")}


def task_of(values: Mapping[str, Any]) -> Task | None:
    """Returns the task of a config.json's class, or None for an encoder or a pre-trained model."""
    name = _class_of(values)
    with_heads = [t for t in TASKS.values() if t.transformers.suffix != ENCODER.suffix]
    return next((t for t in with_heads if name.endswith(t.transformers.suffix)), None)


def check_head(values: Mapping[str, Any], source: str) -> None:
    """Raises an `InputError` for an ELECTRA's multiple-choice head of more than one layer.

    A projection is recognized by its weights' names; an activation or different pooling is not.
    """
    if _class_of(values) != "ElectraForMultipleChoice" or values.get("summary_use_proj", True):
        return
    for key, (known, default) in SUMMARY.items():
        if (found := values.get(key, default)) not in known:
            raise InputError(
                f"{source}: {key} must be {known[0]!r}, as another value means another head. "
                f"Received: {found!r}"
            )


def type_of(values: Mapping[str, Any], source: str) -> str:
    """Returns the task_type of a classifier; a single label is a score, unless multi_label."""
    problem, count = values.get("problem_type"), _count_labels(values, source)
    if not isinstance(problem, str | None) or problem not in TYPES:
        raise InputError(
            f"{source}: problem_type must be one of {', '.join(filter(None, TYPES))}. "
            f"Received: {problem!r}"
        )
    if count == 1 and TYPES[problem] != "multi_label":
        return "regression"
    if TYPES[problem] == "regression":
        raise InputError(
            f"{source}: a model for regression must predict one score. Received: {count}"
        )
    return TYPES[problem]


def settings_of(
    values: Mapping[str, Any],
    config: EncoderConfig,
    source: str,
    modules: SentenceModules | None = None,
    encoder: str = "bert",
) -> dict[str, Any]:
    """Returns the settings of a fine-tuned model; empty for a pre-trained one.

    `values` are the contents of config.json; `modules` are from sentence-transformers' files;
    `encoder` is `Encoder.defaults` of the model.
    """
    task = task_of(values)
    if task is None and modules:
        task = next(t for t in TASKS.values() if t.transformers.makes_vectors)
    if task is None:
        return {}
    settings: dict[str, Any] = {
        name: setting.of_encoder.get(encoder, setting.default)
        for name, setting in task.settings.items()
    }
    settings |= {"task": task.name, **exported_settings(values, task)}
    length = settings["max_seq_length"]
    if modules and task.transformers.makes_vectors:
        settings["pooling"], settings["normalize"] = modules.pooling, modules.normalize
        settings["embedding_sizes"] = _sizes(values, config.hidden_size, source)
        length = modules.max_seq_length or config.max_position_embeddings
    if type(length) is int:  # others are refused when the model is loaded
        settings["max_seq_length"] = min(length, config.max_position_embeddings)
    if task.labels:
        labels = _labels(values, source)
        if task.labels == "tags":
            labels = [iob2_tag(label) or label for label in labels]
        settings["labels"] = ",".join(labels)
    if task.labels == "classes":
        settings["task_type"] = type_of(values, source)
        if settings["task_type"] == "regression":
            settings["labels"] = None
    return settings


def settings_to_export(task: Task, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the value of `SETTINGS_KEY` for a task's recorded settings."""
    kept = {name: settings[name] for name in _kept(task) if settings.get(name) is not None}
    return {"task": task.name, **kept}


def exported_settings(values: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Returns what `settings_to_export` wrote into a config.json for a task, by setting."""
    found = values.get(SETTINGS_KEY)
    if not isinstance(found, dict) or found.get("task") != task.name:
        return {}
    return {name: found[name] for name in _kept(task) if found.get(name) is not None}


def _kept(task):
    """Returns the names of the settings that no other key and no other file gives."""
    if task.transformers.makes_vectors:  # sentence-transformers' files give them
        return []
    # The data set says what is tagged, words or characters, and how answers are compared. Classes
    # may get other names in config.json, which say more than a data set.
    text = [] if task.labels == "classes" else ["task_name"]
    return text + [name for name, setting in task.settings.items() if setting.kind is not str]


def _class_of(values):
    """Returns the name of the transformers class, or "" if no list gives one."""
    architectures = values.get("architectures")
    return str(architectures[0]) if isinstance(architectures, list) and architectures else ""


def _sizes(values, hidden_size, source):
    """Returns the vector sizes below H in the form of --embedding_sizes, or None if none."""
    found = values.get(SIZES_KEY)
    sizes = [] if found is None else found
    if not isinstance(sizes, list) or not all(
        type(size) is int and 1 <= size <= hidden_size for size in sizes
    ):
        raise InputError(
            f"{source}: {SIZES_KEY} must list whole numbers from 1 to {hidden_size}. "
            f"Received: {found!r:.60}"
        )
    parts = sorted({*sizes} - {hidden_size}, reverse=True)
    return ",".join(map(str, parts)) or None


def _labels(values, source):
    """Returns the class names in order, transformers' default names if only the number is given."""
    id2label, count = values.get("id2label"), _count_labels(values, source)
    if id2label is None:
        return [f"LABEL_{number}" for number in range(count)]
    if isinstance(id2label, dict) and id2label:
        names: list[Any] = [id2label.get(str(i)) for i in range(len(id2label))]
        are_names = all(isinstance(n, str) and n.strip() and "," not in n for n in names)
        if are_names and len({name.strip() for name in names}) == len(names):
            return names
    raise InputError(
        f"{source}: id2label must give the classes 0, 1, ... different names without commas. "
        f"Received: {str(id2label)[:200]}"
    )


def _count_labels(values, source):
    """Returns the number of classes."""
    id2label = values.get("id2label")
    count = len(id2label) if isinstance(id2label, dict) else values.get("num_labels", 2)
    if id2label is None and (type(count) is not int or not 1 <= count <= MAX_LABELS):
        raise InputError(
            f"{source}: num_labels must be a whole number from 1 to {MAX_LABELS}. "
            f"Received: {count!r}"
        )
    return count
