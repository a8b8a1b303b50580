"""What the model says of a user's texts."""

from finetuning.classification.predict import read_outputs
from finetuning.classification.task import Classification
from finetuning.datasets import Dataset
from finetuning.readers import Example, check_strings

__all__ = ["make_task", "read_input", "read_outputs"]


def make_task(loaded, tokenizer, max_length):
    """The task of a loaded model."""
    return Classification(Dataset("", {}, loaded.labels), tokenizer, max_length)


def read_input(task, name, value):
    """The example of a text."""
    return Example(name, *check_strings(value), None, None)
