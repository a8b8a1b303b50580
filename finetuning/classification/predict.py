"""Predicts the classes of a user's texts with a fine-tuned model."""

from finetuning.classification.task import Classification
from finetuning.datasets import Dataset
from finetuning.readers import Example, check_strings
from finetuning.results import Classified


def make_task(loaded, tokenizer, max_length):
    """The task of a `LoadedModel`, for texts instead of a data set."""
    dataset = Dataset("", {}, loaded.labels, multi_label=loaded.model.multi_label)
    return Classification(dataset, tokenizer, max_length)


def read_input(task, name, value):
    """The raw example of what a user gives; TypeError or ValueError if it is of another form."""
    first, second = (value, None) if isinstance(value, str) else value
    check_strings(first, *[second] * (second is not None))
    return Example(name, first, second, None)


def read_outputs(task, examples, outputs):
    """What the model's outputs say of each text."""
    labels = task.dataset.labels
    if not labels:
        return [Classified(float(score), {}) for score in task.predictions(outputs)]
    found_of_all = []
    for predicted, shares in zip(
        task.predictions(outputs), task.probabilities(outputs), strict=True
    ):
        chosen = labels[predicted] if not task.dataset.multi_label else None
        if task.dataset.multi_label:
            pairs = zip(labels, predicted, strict=True)
            chosen = tuple(label for label, is_one in pairs if is_one)
        found_of_all.append(Classified(chosen, dict(zip(labels, map(float, shares), strict=True))))
    return found_of_all
