"""Evaluates a pre-training model on held-out records."""

import functools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.progress import progress
from bert_tf.checkpoint_files import RESULTS_FILE
from bert_tf.config import EncoderConfig
from bert_tf.input.pipeline import evaluation_dataset
from bert_tf.input.record_checks import explain_failure
from bert_tf.objective import Objective
from bert_tf.summaries.mask_predictions import guesses_as_markdown
from bert_tf.summaries.reporter import NO_ILLUSTRATIONS, Illustrations
from bert_tf.training.distribution import is_chief
from bert_tf.training.interruptions.out_of_memory import explain_out_of_memory
from bert_tf.training.replicas import all_reduce, feature_specs, graph, local_values, zeros
from bert_tf.training.xla import NOTHING, Compilation, compiled_by_all
from create_pretraining_data.records.reader import count_records
from create_pretraining_data.records.record_format import RecordFormat
from tokenization.base import TokenizerInterface

# The number of held-out sentences whose masked words are shown on TensorBoard.
SHOWN_SENTENCES = 4


class EvaluationStep:
    """Computes a global batch's loss sums without dropout, for a model with an `objective`."""

    def __init__(
        self,
        model: keras.Model,
        strategy: tf.distribute.Strategy,
        compilation: Compilation = NOTHING,
    ) -> None:
        self.model = model
        self.strategy = strategy
        self.weights = model.trainable_variables
        self.forward = graph(self._forward, jit_compile=compilation.whole)
        self.run = graph(self._run)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        """Returns the sums of the model's objective over the global batch."""
        return self.run(batch)

    def compile(self, spec: Mapping[str, tf.TypeSpec], rows: int) -> None:
        """Has XLA compile the forward pass on every device of this worker.

        `spec` is the `element_spec` of the batches, `rows` the number of rows in a replica's part.
        Raises a tf.errors.OpError on failure.
        """
        specs = feature_specs(self.strategy, spec)

        def replica_step():
            self.forward([v.value for v in self.weights], zeros(specs, rows))

        graph(lambda: self.strategy.run(replica_step))()

    def _run(self, batch):
        def replica_step(batch):
            context = tf.distribute.get_replica_context()
            return all_reduce(context, self.forward([v.value for v in self.weights], batch))

        sums = self.strategy.run(replica_step, args=(batch,))
        return {name: local_values(self.strategy, value)[0] for name, value in sums.items()}

    def _forward(self, weights, batch):
        state = [*zip(self.weights, weights, strict=True)]
        with keras.StatelessScope(state_mapping=state):
            return self.model.objective.loss_sums(self.model(batch, training=False), batch)


class RecordsEvaluator:
    """A `HeldOutEvaluator` for records, which runs without dropout and compiles only once.

    Args:
        batch_size: records per batch, over all devices.
        max_batches: the number of batches after which to stop.
        tokenizer: the records' tokenizer, to show masked words on TensorBoard; None to show none,
            or for a model that predicts no masked words.
        objective: the `Objective` whose losses are reported under its names; None: the model's.
        xla: "auto", "on" or "off".

    Raises:
        InputError: a file is truncated, or memory ran out.
    """

    def __init__(
        self,
        model: keras.Model,
        strategy: tf.distribute.Strategy,
        files: Sequence[str],
        record_format: RecordFormat,
        *,
        batch_size: int,
        max_batches: int,
        tokenizer: TokenizerInterface | None = None,
        objective: Objective | None = None,
        xla: str = "auto",
    ) -> None:
        self.model = model
        self.objective = objective or model.objective
        self.strategy = strategy
        self.files = files
        self.record_format = record_format
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.batches = strategy.distribute_datasets_from_function(
            lambda shard: evaluation_dataset(
                files, record_format, model.config, batch_size, max_batches, shard
            )
        )
        rows = -(-batch_size // strategy.num_replicas_in_sync)
        with self._explain_out_of_memory():
            self.step = compiled_by_all(
                functools.partial(EvaluationStep, model, strategy),
                lambda step: step.compile(self.batches.element_spec, rows),
                xla,
                model.compute_dtype,
                strategy,
                "the evaluation",
            )
        self.records = min(sum(map(count_records, files)), batch_size * max_batches)

    def score(self, results: Mapping[str, float]) -> float:
        """Returns the negative of the first of the model's losses that is in the results."""
        names = (f"{self.objective.reported_name(name)}_loss" for name in self.objective.losses)
        return next((-results[name] for name in names if name in results), -math.inf)

    def run(self) -> dict[str, float]:
        """Runs over the records once.

        Returns:
            A dict as in google-research/bert's estimator: "loss", NAME_loss and NAME_accuracy of
            each loss, for example "masked_lm_loss", the objective's shares, and "examples", the
            number of sentence pairs (or records, if they have no sentence labels). Unlike there,
            every record counts once, the loss is the mean over all predictions, and losses without
            predictions in the records are omitted.
        """
        sums = []
        shown, batches = is_chief(self.strategy), -(-self.records // self.batch_size)
        try:
            with (
                progress("evaluating", batches, "batches", shown=shown) as bar,
                self._explain_out_of_memory(),
            ):
                for batch in self.batches:
                    sums.append(self.step(batch))
                    bar.update()
                # This is the first line that waits for the device.
                total = {name: sum(float(part[name]) for part in sums) for name in sums[0]}
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
            explained = explain_failure(self.files, self.record_format, self.model.config)
            raise explained or error from None
        return self._results(total)

    def illustrations(self) -> Illustrations:
        """Returns the best guesses for some masked words; empty without a tokenizer or guesses."""
        if self.tokenizer is None or "masked_lm" not in self.objective.losses:
            return NO_ILLUSTRATIONS
        records = first_records(self.files, self.record_format, self.model.config, SHOWN_SENTENCES)
        guesses = guesses_as_markdown(self.model, self.tokenizer, records)
        return Illustrations({"guesses": guesses}, {})

    def _explain_out_of_memory(self):
        given = {"--eval_batch_size": self.batch_size}
        return explain_out_of_memory(["a lower --eval_batch_size"], given)

    def _results(self, total):
        objective, results, total_loss = self.objective, {}, 0.0
        for name in objective.losses:
            weight = total.get(f"{name}_weight", 0.0)
            if not weight:
                continue
            reported = objective.reported_name(name)
            if f"{name}_correct" in total:
                results[f"{reported}_accuracy"] = total[f"{name}_correct"] / weight
            results[f"{reported}_loss"] = total[f"{name}_loss"] / weight
            total_loss += objective.losses[name].factor * results[f"{reported}_loss"]
        for name, share in objective.shares.items():
            if total.get(share.whole):
                results[name] = total[share.part] / total[share.whole]
        results["loss"] = total_loss
        results["examples"] = round(total.get(f"{objective.examples}_weight", self.records))
        return results


def first_records(
    files: Sequence[str], record_format: RecordFormat, config: EncoderConfig, count: int
) -> list[dict[str, np.ndarray]]:
    """Returns the first `count` records as dicts feature -> array; see `evaluation_dataset`."""
    dataset = evaluation_dataset(files, record_format, config, 1, count)
    return [{k: v[0] for k, v in batch.items()} for batch in dataset.as_numpy_iterator()]


def as_shown(name: str, value: float) -> str:
    """Formats a result, rounded for display; the file has all its digits.

    Thresholds are not rounded, because users pass them to a program, where every digit counts.
    """
    exact = isinstance(value, int) or name.endswith("_thresh")
    return str(value) if exact else f"{value:.4f}"


def write_results(directory: str, results: Mapping[str, float]) -> str:
    """Writes eval_results.txt as in google-research/bert, with sorted "name = value" lines."""
    path = os.path.join(directory, RESULTS_FILE)
    lines = [f"{name} = {results[name]}\n" for name in sorted(results)]
    with atomic_write(path) as file:
        file.write("".join(lines).encode("utf-8"))
    return path


def read_results(directory: str) -> dict[str, float]:
    """Reads the numbers in a directory's eval_results.txt by name; empty if there is no file."""
    path = os.path.join(directory, RESULTS_FILE)
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            return {name: float(value) for name, value in (line.split(" = ") for line in file)}
    except ValueError:
        raise InputError(
            f'{path} must hold lines "name = number" (delete it: an evaluation writes it again). '
            "Received: others"
        ) from None
