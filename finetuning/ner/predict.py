"""Finds the named entities in a user's texts with a fine-tuned model."""

from typing import TYPE_CHECKING, Any

from finetuning.examples import Examples, Outputs
from finetuning.ner.data import NerDataset, Sentence, format_of, untagged_sentence
from finetuning.ner.labels import check_tags
from finetuning.ner.task import NamedEntityRecognition, find_entities
from finetuning.readers import check_strings
from finetuning.results import Tagged
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def make_task(
    loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
) -> NamedEntityRecognition:
    """Makes the task of a `LoadedModel` for a user's texts instead of a data set."""
    check_tags(loaded.labels, loaded.source)
    file_format = format_of(loaded.settings["task_name"], loaded.source)
    dataset = NerDataset(file_format, loaded.labels, {})
    return NamedEntityRecognition(dataset, tokenizer, max_length)


def read_input(task: NamedEntityRecognition, name: str, value: Any) -> Sentence:
    """Makes a raw example of a user's input; TypeError or ValueError if it is malformed."""
    (text,) = check_strings(value)
    return untagged_sentence(name, text, task.dataset.file_format)


def read_outputs(
    task: NamedEntityRecognition, examples: Examples, outputs: Outputs
) -> list[Tagged]:
    """Turns the model's outputs into results, one per text."""
    found_of_all = []
    predictions = task.predictions(examples, outputs)
    alignments, _ = examples.windowing
    for sentence, alignment, (tags, shares) in zip(
        examples.raw, alignments, predictions, strict=True
    ):
        found = tuple(find_entities(sentence, alignment, tags, shares))
        floats = tuple(map(float, shares))
        found_of_all.append(Tagged(found, sentence.units, tuple(tags), floats))
    return found_of_all
