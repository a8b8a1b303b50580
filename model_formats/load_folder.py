"""Loads the model of a folder, pre-trained or fine-tuned, as a `LoadedModel`."""

import re
import warnings

from albert_tf import AlbertModel
from bert_common.errors import InputError
from bert_tf import BertModel, PretrainingModel
from bert_tf.checkpoint import TASK_HEAD_NAMES, check_shapes, load_arrays
from finetuning.classification.head import SequenceClassifier
from finetuning.datasets import DATASETS
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner.head import TokenClassifier
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.span_head import SpanModel
from model_formats.folder_tokenizer import check_table
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import ModelFolder
from model_formats.task_records import SETTINGS_FILE, check_settings
from model_formats.weights import open_weights

ENCODERS = {"bert": BertModel, "albert": AlbertModel}

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
    return load(ModelFolder.open(directory, checkpoint), tokenizer)


def load(folder, tokenizer=None):
    """Loads the model of a `ModelFolder`; `tokenizer` as in `load_folder`."""
    config, checkpoint = folder.config, folder.checkpoint
    tokenizer = tokenizer or folder.tokenizer
    if tokenizer is not None:
        check_table(config, tokenizer.vocab_size, folder.path)
    task, settings = folder.task, folder.settings
    if task != "pretraining":
        check_settings(task, settings, folder.record[0])
    arrays = open_weights(checkpoint, folder)
    check_shapes(config, arrays)
    try:
        model, labels = MAKERS[task](ENCODERS[folder.model_type](config), settings)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder.record[0]} must hold what training recorded. Received: {error!r}"
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
            stacklevel=3,
        )
    return LoadedModel(
        model=model,
        task=task,
        model_type=folder.model_type,
        config=config,
        tokenizer=tokenizer,
        labels=labels,
        missing=report.missing,
        settings=settings,
        trained_positions=folder.trained_positions,
        source=report.checkpoint,
        folder=folder.path,
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
