"""The head of the task: classes of a text."""

from finetuning.classification.head import SequenceClassifier
from finetuning.settings import split_names


def from_settings(encoder, settings):
    """The model that a folder's settings describe, and its labels."""
    labels = split_names(settings["labels"])
    return SequenceClassifier(encoder, len(labels)), labels
