"""Chooses among the options of a user's questions with a fine-tuned model."""

from typing import TYPE_CHECKING, Any

from finetuning.examples import Examples, Outputs
from finetuning.multiple_choice.data import SPECIALS, ChoiceDataset, ChoiceQuestion
from finetuning.multiple_choice.task import MultipleChoice, probabilities
from finetuning.readers import check_members, check_strings
from finetuning.results import Chosen
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def make_task(
    loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
) -> MultipleChoice:
    """Makes the task of a `LoadedModel`, for texts instead of a data set."""
    # A folder of transformers has the default length, which may be too long for a short model.
    longest = min(loaded.settings["max_qa_length"], max_length - SPECIALS)
    return MultipleChoice(ChoiceDataset({}), tokenizer, max_length, longest)


def read_input(task: MultipleChoice, name: str, value: Any) -> ChoiceQuestion:
    """Converts a user's input to a raw example; raises TypeError or ValueError if malformed."""
    question, context, options = check_members(value)
    options = check_strings(*check_members(options))
    if len(options) < 2:
        raise ValueError(options)
    check_strings(context, question)
    return ChoiceQuestion(name, context, question, options, None)


def read_outputs(task: MultipleChoice, examples: Examples, outputs: Outputs) -> list[Chosen]:
    """Turns the model's outputs into results, one for each question."""
    found_of_all = []
    for question, shares in zip(examples.raw, probabilities(outputs), strict=True):
        best = int(shares.argmax())
        found_of_all.append(Chosen(question.options[best], best, tuple(map(float, shares))))
    return found_of_all
