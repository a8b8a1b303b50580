"""Implements the task of multiple-choice questions.

Shapes: N questions, C options.
"""

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np

from finetuning.class_report import Mistakes, write_columns
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples, Outputs
from finetuning.heads import DROPOUT
from finetuning.metrics import softmax
from finetuning.multiple_choice.data import (
    SPECIALS,
    ChoiceDataset,
    ChoiceQuestion,
    encode_choices,
    make_rows,
    pad_choices,
)
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.readers import check_members, check_strings
from finetuning.results import Chosen
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


@dataclasses.dataclass(frozen=True)
class MultipleChoice(DownstreamTask):
    """The task of run_race."""

    dataset: ChoiceDataset
    tokenizer: TokenizerInterface  # the model's
    max_length: int  # the maximum number of tokens in a row
    max_qa_length: int  # the maximum number of tokens in a question with an option
    dropout: float = DROPOUT  # the rate of dropout before the head

    best_by = ("eval_accuracy", True)

    @property
    def rows(self) -> int:
        """The number of options."""
        return max(len(raw[0].options) for raw in self.dataset.questions.values())

    @classmethod
    def of_model(
        cls, loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
    ) -> Self:
        """Makes the task of a fine-tuned model, for a user's texts instead of a data set."""
        # A folder of transformers has the default length, which may be too long for a short model.
        longest = min(loaded.settings["max_qa_length"], max_length - SPECIALS)
        return cls(ChoiceDataset({}), tokenizer, max_length, longest)

    def make_model(self, encoder: keras.Model) -> MultipleChoiceModel:
        """Puts a new `MultipleChoiceModel` head on an encoder."""
        return MultipleChoiceModel(encoder, dropout=self.dropout)

    def read_input(self, name: str, value: Any) -> ChoiceQuestion:
        """Makes a raw example of a user's input; raises TypeError or ValueError if malformed."""
        question, context, options = check_members(value)
        options = check_strings(*check_members(options))
        if len(options) < 2:
            raise ValueError(options)
        check_strings(context, question)
        return ChoiceQuestion(name, context, question, options, None)

    def encode(self, raw: Sequence[ChoiceQuestion], training: bool) -> Examples:
        """Encodes `data.ChoiceQuestion`s, for training and evaluation alike."""
        encoded = encode_choices(self.tokenizer, raw, self.max_qa_length)
        known = np.array([choice.label is not None for choice in raw], np.float32)
        labels = labels_of(raw)

        def make_batch(indices, length):
            rows = [make_rows(self.tokenizer, encoded[i], self.max_length) for i in indices]
            batch = pad_choices(rows, length, self.tokenizer.pad_id or 0)
            return {**batch, "label_ids": labels[indices], "label_weights": known[indices]}

        lengths = [
            max(len(row.ids) for row in make_rows(self.tokenizer, question, self.max_length))
            for question in encoded
        ]
        return Examples(np.array(lengths), make_batch, [choice.id for choice in raw], raw)

    def read_outputs(self, examples: Examples, outputs: Outputs) -> list[Chosen]:
        """Returns the option that answers each question."""
        found_of_all = []
        for question, shares in zip(examples.raw, probabilities(outputs), strict=True):
            best = int(shares.argmax())
            found_of_all.append(Chosen(question.options[best], best, tuple(map(float, shares))))
        return found_of_all

    def measure(
        self, model: MultipleChoiceModel, examples: Examples, outputs: Outputs
    ) -> dict[str, float]:
        """Computes "accuracy" and "loss"."""
        labels, shares = labels_of(examples.raw), probabilities(outputs)
        losses = -np.log(shares[np.arange(len(labels)), labels])
        correct = labels == shares.argmax(axis=1)
        return {"accuracy": float(np.mean(correct)), "loss": float(np.mean(losses))}

    def baseline(self, examples: Examples) -> dict[str, float]:
        """Computes the accuracy of always choosing the option that is most often correct."""
        labels = labels_of(examples.raw)
        return {"accuracy": float(np.mean(labels == np.bincount(labels).argmax()))}

    def mistakes(
        self, model: MultipleChoiceModel, examples: Examples, outputs: Outputs
    ) -> Mistakes:
        """Lists the wrong answers, the lowest probability of the true option first."""
        labels, shares = labels_of(examples.raw), probabilities(outputs)
        of_true = shares[np.arange(len(labels)), labels]  # [N]
        wrong = np.flatnonzero(shares.argmax(axis=1) != labels)
        rows = []
        for i in wrong[np.argsort(of_true[wrong], kind="stable")]:
            choice, predicted = examples.raw[i], shares[i].argmax()
            options = choice.options[labels[i]], choice.options[predicted]
            rows.append((choice.question, *options, f"{shares[i][predicted]:.3f}"))
        return Mistakes(("question", "true", "predicted", "its probability"), rows)

    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes predictions_SPLIT.tsv: id, label if known, prediction, each option's probability.

        Options are written as letters from A.
        """
        path = os.path.join(directory, f"predictions_{split}.tsv")
        raw, shares = examples.raw, probabilities(outputs)
        columns: list[tuple[str, Iterable[object]]] = [("id", [choice.id for choice in raw])]
        if all(choice.label is not None for choice in raw):
            columns.append(("label", [letter(choice.label) for choice in raw]))
        columns.append(("prediction", [letter(best) for best in shares.argmax(axis=1)]))
        for number in range(shares.shape[1]):
            columns.append((letter(number), map("{:.6f}".format, shares[:, number])))
        write_columns(path, columns)
        return [path]


def labels_of(choices: Sequence[ChoiceQuestion]) -> np.ndarray:
    """Returns the index of each question's correct option, [N] int32; 0 if unknown."""
    return np.array([choice.label or 0 for choice in choices], np.int32)


def probabilities(outputs: Outputs) -> np.ndarray:
    """Computes the probability of each option, [N, C]."""
    return softmax(np.stack(outputs["logits"]).astype(np.float64))


def letter(number: int | np.integer) -> str:
    """Names an option as spreadsheets name columns: 0 -> A, 25 -> Z, 26 -> AA, 27 -> AB, etc."""
    before, last = divmod(int(number), 26)
    return (letter(before - 1) if before else "") + chr(ord("A") + last)


TASK = MultipleChoice
