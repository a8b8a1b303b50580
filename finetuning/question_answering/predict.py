"""Answers a user's questions about texts with a fine-tuned model."""

from typing import TYPE_CHECKING, Any

from finetuning.examples import Examples, Outputs
from finetuning.question_answering.answers import NO_ANSWER_SCORE, candidate_probabilities
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.data import Question, QuestionDataset
from finetuning.question_answering.task import QuestionAnswering
from finetuning.question_answering.windows import SPECIALS
from finetuning.readers import check_members, check_strings
from finetuning.results import Answered, FoundAnswer
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def make_task(
    loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
) -> QuestionAnswering:
    """Makes the task of a `LoadedModel` for a user's texts instead of a data set."""
    settings, beams = loaded.settings, None
    if isinstance(loaded.model, BeamSpanModel):
        beams = loaded.model.start_n_top, loaded.model.end_n_top
    negative = settings["version_2_with_negative"]
    return QuestionAnswering(
        dataset=QuestionDataset("squad", negative, {}),
        tokenizer=tokenizer,
        max_length=max_length,
        doc_stride=settings["doc_stride"],
        max_query_length=min(settings["max_query_length"], max_length - SPECIALS - 1),
        n_best_size=settings["n_best_size"],
        max_answer_length=settings["max_answer_length"],
        threshold=settings["null_score_diff_threshold"],
        beams=beams,
    )


def read_input(task: QuestionAnswering, name: str, value: Any) -> Question:
    """Makes a raw example of a user's input; TypeError or ValueError if it is malformed."""
    question, context = check_strings(*check_members(value))
    return Question(name, question, context, (), False)


def read_outputs(task: QuestionAnswering, examples: Examples, outputs: Outputs) -> list[Answered]:
    """Turns the model's outputs into results, one per question."""
    found = task.answers(examples, outputs)
    found_of_all = []
    for key, chosen in task.texts(found).items():
        # If no span is valid, the list holds a placeholder.
        nbest = [each for each in found.nbest[key] if each.start_score != NO_ANSWER_SCORE]
        shares = candidate_probabilities(nbest).tolist() if nbest else []
        candidates = tuple(
            FoundAnswer(each.text, start, end, share)
            for each, share in zip(nbest, shares, strict=True)
            for start, end in [each.span or (None, None)]
        )
        # A beam head's score of "no answer" is not comparable to the scores of answers.
        nothing = FoundAnswer("", None, None, 0.0)
        best = next((each for each in candidates if each.text == chosen), nothing)
        found_of_all.append(Answered(best, candidates))
    return found_of_all
