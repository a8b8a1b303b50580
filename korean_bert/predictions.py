"""Predicts with fine-tuned models, using the code of the fine-tuning programs."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from bert_common.errors import InputError
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import LENGTH_STEP, Examples, Outputs
from finetuning.results import Prediction
from finetuning.tasks import TASKS
from model_formats.loaded_model import LoadedModel
from tokenization.base import TokenizerInterface


class TaskPredictor:
    """Predicts with a fine-tuned model, on rows of at most `max_length` tokens.

    Raises an `InputError` if the model is not fine-tuned, or if its labels are not tags.
    """

    def __init__(self, loaded: LoadedModel, tokenizer: TokenizerInterface, max_length: int) -> None:
        if loaded.task not in TASKS:
            raise InputError(
                "predict needs a fine-tuned model, such as run_classifier.py trains. "
                f"Received: {loaded.source} ({loaded.task})"
            )
        self.takes = TASKS[loaded.task].takes  # for messages
        task: type[DownstreamTask] = TASKS[loaded.task].module("task").TASK
        self.task = task.of_model(loaded, tokenizer, max_length)
        self.max_length = max_length
        # A beam keeps this many positions, so a row must have at least as many.
        widest = (getattr(loaded.model, name, 1) for name in ("start_n_top", "end_n_top"))
        self.least_length = max(widest)
        # One graph for batches of all sizes, so that a text of a new length does not wait for one.
        forward: Callable[..., Any] = loaded.model
        self.run = tf.function(
            functools.partial(forward, training=False), reduce_retracing=True, autograph=False
        )

    def __call__(self, texts: Iterable[Any], batch_size: int) -> list[Prediction]:
        """Returns the results for texts, which have the form that the task needs, in order."""
        raw = []
        for number, text in enumerate(texts):
            try:
                raw.append(self.task.read_input(str(number), text))
            except (TypeError, ValueError):
                raise InputError(f"this model takes {self.takes}. Received: {text!r}") from None
        if not raw:
            return []
        if len({len(getattr(each, "options", ())) for each in raw}) > 1:
            raise InputError(f"this model takes {self.takes}. Received: other numbers")
        examples = self.task.encode(raw, False)
        # Texts without any token have no row.
        outputs: Outputs = {"logits": []}
        if len(examples.lengths):
            outputs = self.compute(examples, batch_size)
        return [*self.task.read_outputs(examples, outputs)]

    def compute(self, examples: Examples, batch_size: int) -> Outputs:
        """Returns the model's outputs for all examples."""

        def run(indices, longest):
            longest = max(longest, self.least_length)
            length = min(-(-longest // LENGTH_STEP) * LENGTH_STEP, self.max_length)
            batch = examples.make_batch(indices, length)
            outputs = self.run({name: tf.constant(value) for name, value in batch.items()})
            return {name: value.numpy() for name, value in outputs.items()}

        return examples.outputs(run, batch_size)
