"""Declares what the fine-tuning programs expect of a downstream task: `DownstreamTask`.

A new kind of task is one class with these members; `classification.task.Classification` is the
example to read.

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
        """Name of each split -> whether its labels are published.

        "train" is trained on; the first other split with labels chooses the best checkpoint.
        """


@runtime_checkable
class DownstreamTask(Protocol):
    """What a model is fine-tuned for: encodes examples, makes the model, measures its outputs.

    In the methods below, `model` is what `make_model` returned, `examples` is what `encode`
    returned, and `outputs` is what a `finetuning.prediction.Predictor` computed for them.
    """

    @property
    def dataset(self) -> TaskDataset:
        """The data that it is trained and measured on."""

    @property
    def best_by(self) -> tuple[str, bool]:
        """(name, higher is better): the result that chooses the best checkpoint.

        The name is "eval_" and a key of what `measure` returns.
        """

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the model's folder records in addition to the program's flags.

        The name of a flag -> a value that JSON can hold.
        """

    @property
    def rows(self) -> int:
        """The number of rows of the encoder's input in one encoded example: 1 for most tasks."""

    def make_model(self, encoder: keras.Model) -> EncoderModel:
        """Puts a new head on a `BertModel`, or on what is derived from it.

        The result has an `objective`; its inputs are the batches of `encode`.
        """

    def encode(self, raw: Sequence[Any], training: bool) -> Examples:
        """Encodes the examples of a split, N, as they were read.

        Args:
            training: whether they are for training rather than for evaluation or prediction.

        Returns:
            The `Examples`, whose attribute `raw` is the argument. There may be more or fewer than
            N, where long texts are cut into windows.

        Raises:
            InputError: an example cannot be encoded.
        """

    def measure(self, model: Any, examples: Examples, outputs: Outputs) -> dict[str, float]:
        """Computes the metrics: name -> number, with "loss" if it can be computed."""

    def baseline(self, examples: Examples) -> dict[str, float]:
        """Computes metrics of `measure` for a trivial baseline, which needs no model."""

    def illustrations(self, model: Any, examples: Examples, outputs: Outputs) -> Illustrations:
        """Makes what TensorBoard shows of an evaluation in addition to its numbers."""

    def write_details(
        self, directory: str, split: str, model: Any, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes what `measure` does not tell, such as the figures of each class; may do nothing.

        Returns the paths of the files.
        """

    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes the predictions into files of an existing folder; returns their paths.

        The name of the split may be part of the files' names.
        """


class NothingMore:
    """The members of a `DownstreamTask` whose numbers tell all."""

    def illustrations(self, model: Any, examples: Examples, outputs: Outputs) -> Illustrations:
        """Makes nothing."""
        return NO_ILLUSTRATIONS

    def write_details(
        self, directory: str, split: str, model: Any, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes nothing."""
        return []
