"""Loads the model of a folder, pre-trained or fine-tuned, as a `LoadedModel`."""

import os
import re
import warnings

from albert_tf import AlbertModel
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_tf import BertModel, PretrainingModel
from bert_tf.checkpoint import TASK_HEAD_NAMES, check_shapes, load_arrays
from finetuning.classification.head import SequenceClassifier
from finetuning.datasets import DATASETS
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner.head import TokenClassifier
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.span_head import SpanModel
from model_formats.folder_tokenizer import check_table, load_folder_tokenizer
from model_formats.huggingface.task_settings import settings_of
from model_formats.loaded_model import LoadedModel
from model_formats.model_configs import read_model_config
from model_formats.model_folder import (
    SETTINGS_FILE,
    find_checkpoint,
    find_config,
    find_folder,
    huggingface_config,
    read_settings_file,
    read_trained_positions,
)
from model_formats.task_records import check_settings
from model_formats.weights import open_weights

ENCODERS = {"bert": BertModel, "albert": AlbertModel}

# Fine-tuned task -> a setting that folders of none of the tasks before it have.
TASK_SETTINGS = {
    "question_answering": "start_n_top",
    "multiple_choice": "max_qa_length",
    "classification": "task_type",
    "ner": "labels",
}

# Task -> the settings that its folders must have beside those of every task.
NEEDED = {
    "question_answering": (
        "doc_stride", "max_query_length", "n_best_size", "max_answer_length",
        "null_score_diff_threshold", "version_2_with_negative",
    ),
    "multiple_choice": ("max_qa_length",),
    "ner": ("labels",),
}  # fmt: skip

# Task -> prefixes of the weights that its files may lack, all of one prefix or none: heads that
# were never trained, and the pooler where the task does not read it.
OPTIONAL = {
    "pretraining": ("cls/predictions/", "cls/seq_relationship/", "bert/pooler/"),
    "ner": ("bert/pooler/",),
    "question_answering": ("bert/pooler/",),
}


def load_folder(directory, checkpoint=None, tokenizer=None):
    """Loads a model with everything that its folder holds.

    Args:
        directory: a folder that this project wrote, or a released model, unpacked.
        checkpoint: the prefix of one of its checkpoints; None for the best, else the newest.
        tokenizer: its tokenizer, where the folder does not say which it is.

    Returns:
        A `LoadedModel`.

    Raises:
        InputError: the folder holds no model, or files that contradict each other.
    """
    folder = find_folder(directory)
    model_type, path = find_config(folder)
    config = read_model_config(path, model_type)
    checkpoint = checkpoint or find_checkpoint(folder)
    tokenizer = tokenizer or load_folder_tokenizer(directory)
    if tokenizer is not None:
        check_table(config, tokenizer.vocab_size, folder)
    settings_path, settings = find_settings(folder, path, config)
    task = task_of(settings, settings_path)
    if settings:
        check_settings(settings, settings_path, NEEDED.get(task, ()))
    arrays = open_weights(checkpoint)
    check_shapes(config, arrays)
    try:
        model, labels = MAKERS[task](ENCODERS[model_type](config), settings)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{settings_path} must hold what training recorded. Received: {error!r}"
        ) from None
    absent = [
        prefix
        for prefix in OPTIONAL.get(task, ())
        if not any(name.startswith(prefix) for name in arrays.shapes)
    ]
    report = load_arrays(model, arrays, absent)
    moments = tuple(f"{name}/" for name in report.loaded)  # those of the model's own variables
    ignored = (name for name in report.ignored if not name.startswith(moments))
    heads = [name for name in ignored if re.search(TASK_HEAD_NAMES, name)]
    if heads:
        warnings.warn(
            f"{report.checkpoint} has a head, {', '.join(heads)}, of a task that its folder does "
            f"not describe ({SETTINGS_FILE}): it is left out",
            stacklevel=2,
        )
    return LoadedModel(
        model=model,
        task=task,
        model_type=model_type,
        config=config,
        tokenizer=tokenizer,
        labels=labels,
        missing=report.missing,
        settings=settings,
        trained_positions=read_trained_positions(checkpoint),
        source=report.checkpoint,
        folder=folder,
    )


def find_settings(folder, config_path, config):
    """What a fine-tuned model's folder records of its task.

    Args:
        folder: the folder.
        config_path: its configuration, perhaps a config.json of transformers.
        config: what that describes.

    Returns:
        The file, and what it says as a dict, empty for a pre-trained model.
    """
    path = os.path.join(folder, SETTINGS_FILE)
    if os.path.exists(path):
        return path, read_settings_file(path)
    if config_path == huggingface_config(folder):
        values = read_json(read_bytes(config_path), config_path)
        return config_path, settings_of(values, config, config_path)
    return path, {}


def task_of(settings, path):
    """The task whose program recorded the settings; "pretraining" if there are none."""
    if not settings:
        return "pretraining"
    for task, name in TASK_SETTINGS.items():
        if name in settings:
            return task
    raise InputError(
        f"{path} must hold one of {', '.join(TASK_SETTINGS.values())}. "
        f"Received: {', '.join(settings)}"
    )


def _pretraining(encoder, settings):
    return PretrainingModel(encoder), ()


def _classification(encoder, settings):
    dataset = DATASETS.get(settings["task_name"])
    if dataset:
        labels, multi_label = dataset.labels, dataset.multi_label
    else:
        labels, multi_label = _names(settings["labels"]), settings["task_type"] == "multi_label"
    model = SequenceClassifier(
        encoder,
        max(1, len(labels)),
        multi_label=multi_label,
        feature_layers=_numbers(settings["feature_layers"]),
    )
    return model, labels


def _ner(encoder, settings):
    labels = _names(settings["labels"])
    layers = _numbers(settings["feature_layers"])
    return TokenClassifier(encoder, len(labels), feature_layers=layers), labels


def _question_answering(encoder, settings):
    starts, ends = settings["start_n_top"], settings["end_n_top"]
    return (BeamSpanModel(encoder, starts, ends) if starts else SpanModel(encoder)), ()


def _multiple_choice(encoder, settings):
    return MultipleChoiceModel(encoder), ()


# Task -> a function of an encoder and the settings that returns the model and its labels.
MAKERS = {
    "pretraining": _pretraining,
    "classification": _classification,
    "ner": _ner,
    "question_answering": _question_answering,
    "multiple_choice": _multiple_choice,
}


def _names(text):
    """The names in a list separated by commas; none without a list."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _numbers(text):
    return tuple(int(part) for part in text.split(",")) if text else ()
