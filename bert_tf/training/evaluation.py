"""Measures the pre-training heads on held-out records."""

import os

import tensorflow as tf

from bert_common.errors import InputError
from bert_common.progress import progress
from bert_tf.input.pipeline import distribute_evaluation, evaluation_dataset
from bert_tf.input.record_checks import explain_failure
from bert_tf.summaries.mask_predictions import guesses_as_markdown
from bert_tf.summaries.reporter import NO_ILLUSTRATIONS, Illustrations
from bert_tf.training.distribution import is_chief
from bert_tf.training.interruptions.out_of_memory import explain_out_of_memory
from bert_tf.training.step import EvaluationStep
from create_pretraining_data.records.reader import count_records

RESULTS_FILE = "eval_results.txt"

# Held-out sentences whose masked words are shown on TensorBoard.
SHOWN_SENTENCES = 4


class Evaluator:
    """Runs over held-out records as often as it is asked to, without dropout.

    What is compiled is compiled once. Training is left as it is: nothing but the weights is
    read.

    Args:
        model: a `PretrainingModel`, made in the strategy's scope.
        strategy: a `tf.distribute.Strategy`.
        files: TFRecord files.
        record_format: their `RecordFormat`.
        batch_size: records at a time, over all devices.
        max_batches: stop after as many.
        sentence_name: "next_sentence" or "sentence_order".
        tokenizer: that of the records, for the sentences that TensorBoard shows, or None.
        xla: "auto", "on" or "off": whether XLA compiles the step.

    Raises:
        InputError: a truncated file.
    """

    # What the best checkpoint is chosen by: a result, and whether more of it is better.
    best_by = ("masked_lm_loss", False)

    def __init__(
        self,
        model,
        strategy,
        files,
        record_format,
        batch_size,
        max_batches,
        sentence_name,
        tokenizer=None,
        xla="auto",
    ):
        self.model = model
        self.strategy = strategy
        self.files = files
        self.record_format = record_format
        self.sentence_name = sentence_name
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.step = EvaluationStep(model, strategy, xla=xla)
        self.batches = distribute_evaluation(
            strategy, files, record_format, model.config, batch_size, max_batches
        )
        self.records = min(sum(map(count_records, files)), batch_size * max_batches)
        self.number_of_batches = -(-self.records // batch_size)

    def run(self):
        """Runs over the records once.

        Returns:
            A dict as google-research/bert's estimator gives it: "loss", "masked_lm_accuracy",
            "masked_lm_loss" and the sentence objective's two; with "examples", the number of
            sentence pairs that counted (of records, where they have no sentence labels).
            Unlike there every record counts once, and the loss is over all predictions alike.

        Raises:
            InputError: a damaged record, or more memory needed than there is.
        """
        sums, received = [], {"--eval_batch_size": self.batch_size}
        shown = is_chief(self.strategy)
        try:
            with (
                progress("evaluating", self.number_of_batches, "batches", shown=shown) as bar,
                explain_out_of_memory(["a lower --eval_batch_size"], received),
            ):
                for batch in self.batches:
                    sums.append(self.step(batch))
                    bar.update()
                # Only now does anything wait for the device.
                total = {name: sum(float(part[name]) for part in sums) for name in sums[0]}
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
            explained = explain_failure(self.files, self.record_format, self.model.config)
            raise explained or error from None
        return self._results(total)

    def illustrations(self):
        """The best guesses for some masked words; nothing without a tokenizer."""
        if self.tokenizer is None:
            return NO_ILLUSTRATIONS
        records = first_records(self.files, self.record_format, self.model.config, SHOWN_SENTENCES)
        guesses = guesses_as_markdown(self.model, self.tokenizer, records)
        return Illustrations({"guesses": guesses}, {})

    def _results(self, total):
        results = {}
        for ours, shown in (("masked_lm", "masked_lm"), ("next_sentence", self.sentence_name)):
            if f"{ours}_weight" in total:
                weight = max(total[f"{ours}_weight"], 1e-9)
                results[f"{shown}_accuracy"] = total[f"{ours}_correct"] / weight
                results[f"{shown}_loss"] = total[f"{ours}_loss"] / weight
        results["loss"] = sum(value for name, value in results.items() if name.endswith("_loss"))
        results["examples"] = round(total.get("next_sentence_weight", self.records))
        return results


def first_records(files, record_format, config, count):
    """The first records of some files, for a look at what the model makes of them.

    Args:
        files: TFRecord files.
        record_format: their `RecordFormat`.
        config: the model's configuration.
        count: how many.

    Returns:
        A list of dicts: feature's name -> NumPy array.
    """
    dataset = evaluation_dataset(files, record_format, config, 1, count)
    return [{k: v[0] for k, v in each.items()} for each in dataset.as_numpy_iterator()]


def as_shown(value):
    """A result as a person reads it; the file has all its digits."""
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def write_results(directory, results):
    """Writes eval_results.txt as google-research/bert does: sorted "name = value" lines."""
    path = os.path.join(directory, RESULTS_FILE)
    temporary = f"{path}.tmp-{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.writelines(f"{name} = {results[name]}\n" for name in sorted(results))
    os.replace(temporary, path)
    return path


def read_results(directory):
    """The numbers of a directory's eval_results.txt by name; empty without one.

    Raises:
        InputError: the file is damaged.
    """
    path = os.path.join(directory, RESULTS_FILE)
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            return {name: float(value) for name, value in (line.split(" = ") for line in file)}
    except ValueError:
        raise InputError(f'{path} must hold lines "name = number". Received: others') from None
