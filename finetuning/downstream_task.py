"""Declares `DownstreamTask`, the interface that the fine-tuning programs expect of a task.

A new kind of task is one class with these members; see `classification.task.Classification` for an
example.

Shapes: N raw examples, B encoded examples of a batch.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import keras

from bert_tf.encoder import EncoderModel
from bert_tf.summaries.reporter import NO_ILLUSTRATIONS, Illustrations
from finetuning.examples import Examples, Outputs


class TaskDataset(Protocol):
    """The data that a task is trained and measured on."""

    @property
    def splits(self) -> dict[str, bool]:
        """Maps the name of each split to whether its labels are published.

        "train" is trained on; the first other split with labels chooses the best checkpoint.
        """


@runtime_checkable
class DownstreamTask(Protocol):
    """A downstream task: it encodes examples, makes the model and measures its outputs.

    In the methods below, `model` is what `make_model` returned, `examples` is what `encode`
    returned, and `outputs` is what a `finetuning.prediction.Predictor` computed for them.
    """

    @property
    def dataset(self) -> TaskDataset:
        """The data that the task is trained and measured on."""

    @property
    def best_by(self) -> tuple[str, bool]:
        """The result that chooses the best checkpoint: (its name, whether higher is better).

        The name is "eval_" followed by a key of the metrics that `measure` returns.
        """

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the model's folder records in addition to the program's flags.

        Maps the name of a flag to a value that JSON can hold.
        """

    @property
    def rows(self) -> int:
        """The number of rows of the encoder's input in one encoded example: 1 for most tasks."""

    def make_model(self, encoder: keras.Model) -> EncoderModel:
        """Puts a new head on a `BertModel` or an instance of a subclass.

        The model that it returns has an `objective` and takes the batches of `encode`.
        """

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

    def measure(self, model: Any, examples: Examples, outputs: Outputs) -> dict[str, float]:
        """Computes the metrics by their names, with "loss" if it can be computed."""

    def baseline(self, examples: Examples) -> dict[str, float]:
        """Computes metrics of `measure` for a trivial baseline that needs no model."""

    def illustrations(self, model: Any, examples: Examples, outputs: Outputs) -> Illustrations:
        """Makes the plots and texts that TensorBoard shows of an evaluation."""

    def write_details(
        self, directory: str, split: str, model: Any, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes details beyond `measure`, such as the metrics of each class; may write nothing.

        Returns the paths of the files.
        """

    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes the predictions into files in an existing folder; returns their paths.

        The files' names may contain the name of the split.
        """


class NothingMore:
    """A base class for a `DownstreamTask` that has neither illustrations nor details."""

    def illustrations(self, model: Any, examples: Examples, outputs: Outputs) -> Illustrations:
        """Returns no illustrations."""
        return NO_ILLUSTRATIONS

    def write_details(
        self, directory: str, split: str, model: Any, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes nothing."""
        return []
