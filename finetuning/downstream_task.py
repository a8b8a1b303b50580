"""Declares `DownstreamTask`, the base class of the tasks that models are fine-tuned on.

See `classification.task.Classification` for an example.

Shapes: N raw examples, B encoded examples of a batch.
"""

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import keras

from bert_tf.encoder import EncoderModel
from bert_tf.summaries.markdown import as_markdown_table
from bert_tf.summaries.reporter import Illustrations
from finetuning.class_report import ClassReport, Mistakes, write_class_report, write_mistakes
from finetuning.examples import Examples, Outputs
from finetuning.plots import MAX_DRAWN_CLASSES, draw_confusion_matrix
from finetuning.results import Prediction
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel

# The maximum number of mistakes that TensorBoard shows, and of characters in a cell.
SHOWN_MISTAKES, SHOWN_CHARACTERS = 10, 200


class TaskDataset(Protocol):
    """The data that a task is trained and measured on."""

    @property
    def splits(self) -> dict[str, bool]:
        """Maps the name of each split to whether its labels are published.

        "train" is trained on; the first other split with labels chooses the best checkpoint.
        """


class DownstreamTask(abc.ABC):
    """A downstream task: it encodes examples, makes the model, measures and reads its outputs.

    In the methods below, `model` is what `make_model` returned, `examples` is what `encode`
    returned, and `outputs` is what a `finetuning.prediction.Predictor` computed for them.
    """

    dataset: TaskDataset  # the data that the task is trained and measured on

    @property
    @abc.abstractmethod
    def best_by(self) -> tuple[str, bool]:
        """The result that chooses the best checkpoint: (its name, whether higher is better).

        The name is "eval_" followed by a key of the metrics that `measure` returns.
        """

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the model's folder records in addition to the program's flags.

        Maps the name of a flag to a value that JSON can hold.
        """
        return {}

    @property
    def rows(self) -> int:
        """The number of rows of the encoder's input in one encoded example: 1 for most tasks."""
        return 1

    @classmethod
    @abc.abstractmethod
    def of_model(
        cls, loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
    ) -> Self:
        """Makes the task of a fine-tuned model, for a user's texts instead of a data set."""

    @abc.abstractmethod
    def make_model(self, encoder: keras.Model) -> EncoderModel:
        """Puts a new head on a `BertModel` or an instance of a subclass.

        The model that it returns has an `objective` and takes the batches of `encode`.
        """

    @abc.abstractmethod
    def read_input(self, name: str, value: Any) -> Any:
        """Makes a raw example of a user's input; raises TypeError or ValueError if malformed."""

    @abc.abstractmethod
    def encode(self, raw: Sequence[Any], training: bool) -> Examples:
        """Encodes the N examples of a split as they were read.

        Args:
            training: whether to encode for training rather than for evaluation or prediction.

        Returns:
            The `Examples`, whose attribute `raw` is the argument. Their number differs from N if
            long texts are cut into windows.

        Raises:
            InputError: an example cannot be encoded.
        """

    @abc.abstractmethod
    def read_outputs(self, examples: Examples, outputs: Outputs) -> Sequence[Prediction]:
        """Returns the prediction for each of the N examples."""

    @abc.abstractmethod
    def measure(self, model: Any, examples: Examples, outputs: Outputs) -> dict[str, float]:
        """Computes the metrics by their names, with "loss" if it can be computed."""

    def baseline(self, examples: Examples) -> dict[str, float]:
        """Computes metrics of `measure` for a trivial baseline that needs no model."""
        return {}

    def mistakes(self, model: Any, examples: Examples, outputs: Outputs) -> Mistakes | None:
        """Lists the wrong predictions; None if a prediction is neither right nor wrong."""
        return None

    def report(self, examples: Examples, outputs: Outputs) -> ClassReport | None:
        """Computes the metrics of each class; None without classes."""
        return None

    def illustrations(self, model: Any, examples: Examples, outputs: Outputs) -> Illustrations:
        """Makes what TensorBoard shows of an evaluation: mistakes, and confusions of classes."""
        texts, images = {}, {}
        mistakes, report = self.mistakes(model, examples, outputs), self.report(examples, outputs)
        if mistakes is not None:
            worst = mistakes.rows[:SHOWN_MISTAKES]
            rows = [[cell[:SHOWN_CHARACTERS] for cell in row] for row in worst]
            texts["most_wrong"] = as_markdown_table(rows, mistakes.columns)
        if (
            report is not None
            and report.confusion is not None
            and len(report.labels) <= MAX_DRAWN_CLASSES
        ):
            numbered = enumerate(report.labels)
            texts["classes"] = as_markdown_table(numbered, ("number in the plot", "class"))
            images["confusion"] = draw_confusion_matrix(report)
        return Illustrations(texts, images)

    def write_details(
        self, directory: str, split: str, model: Any, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes the metrics of each class and the mistakes; returns the paths of the files."""
        paths = []
        mistakes, report = self.mistakes(model, examples, outputs), self.report(examples, outputs)
        if report is not None:
            paths += write_class_report(directory, split, report)
        if mistakes is not None:
            paths.append(write_mistakes(directory, split, mistakes))
        return paths

    @abc.abstractmethod
    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes the predictions into files in an existing folder; returns their paths.

        The files' names may contain the name of the split.
        """
