"""Predicts the classes of a user's texts with a fine-tuned model."""

from typing import TYPE_CHECKING, Any

from finetuning.classification.task import Classification
from finetuning.datasets import Dataset
from finetuning.examples import Examples, Outputs
from finetuning.readers import Example, check_members, check_strings
from finetuning.results import Classified
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def make_task(
    loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
) -> Classification:
    """Makes the task of a `LoadedModel`, for texts instead of a data set."""
    dataset = Dataset("", {}, loaded.labels, multi_label=loaded.model.multi_label)
    return Classification(dataset, tokenizer, max_length)


def read_input(task: Classification, name: str, value: Any) -> Example:
    """Converts a user's input to a raw example; raises TypeError or ValueError if malformed."""
    first, second = (value, None) if isinstance(value, str) else check_members(value)
    check_strings(first, "" if second is None else second)
    return Example(name, first, second, None)


def read_outputs(task: Classification, examples: Examples, outputs: Outputs) -> list[Classified]:
    """Turns the model's outputs into results, one for each text."""
    labels = task.dataset.labels
    if not labels:
        return [Classified(float(score), {}) for score in task.predictions(outputs)]
    found_of_all = []
    for predicted, shares in zip(
        task.predictions(outputs), task.probabilities(outputs), strict=True
    ):
        chosen: str | tuple[str, ...]
        if task.dataset.multi_label:
            pairs = zip(labels, predicted, strict=True)
            chosen = tuple(label for label, is_one in pairs if is_one)
        else:
            chosen = labels[predicted]
        found_of_all.append(Classified(chosen, dict(zip(labels, map(float, shares), strict=True))))
    return found_of_all
