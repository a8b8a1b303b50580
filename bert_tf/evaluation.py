"""Measures the pre-training heads on held-out records."""

import os

import tensorflow as tf
from tqdm import tqdm

from bert_tf.input_pipeline import evaluation_dataset, explain_failure
from bert_tf.step import EvaluationStep

RESULTS_FILE = "eval_results.txt"


def evaluate(model, strategy, files, record_format, batch_size, max_batches, sentence_name):
    """Runs over the records once, without dropout.

    Args:
        model: a `PretrainingModel`, made in the strategy's scope.
        strategy: a `tf.distribute.Strategy`.
        files: TFRecord files.
        record_format: their `RecordFormat`.
        batch_size: examples at a time, over all devices.
        max_batches: stop after as many.
        sentence_name: "next_sentence" or "sentence_order".

    Returns:
        A dict as google-research/bert's estimator gives it: "loss", "masked_lm_accuracy",
        "masked_lm_loss" and the sentence objective's two. Unlike there every record counts
        once, and the loss is over all predictions alike.

    Raises:
        InputError: a damaged record.
    """
    dataset = evaluation_dataset(files, record_format, model.config, batch_size, max_batches)
    step = EvaluationStep(model, strategy)
    total = {}
    try:
        batches = strategy.experimental_distribute_dataset(dataset)
        for batch in tqdm(batches, desc="evaluation", unit="batch", leave=False):
            for name, value in step(batch).items():
                total[name] = total.get(name, 0.0) + float(value)
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise explain_failure(files, record_format, model.config) or error from None
    results = {}
    for ours, shown in (("masked_lm", "masked_lm"), ("next_sentence", sentence_name)):
        if f"{ours}_weight" in total:
            weight = max(total[f"{ours}_weight"], 1e-9)
            results[f"{shown}_accuracy"] = total[f"{ours}_correct"] / weight
            results[f"{shown}_loss"] = total[f"{ours}_loss"] / weight
    results["loss"] = sum(value for name, value in results.items() if name.endswith("_loss"))
    return results


def write_results(directory, results):
    """Writes eval_results.txt as google-research/bert does: sorted "name = value" lines."""
    path = os.path.join(directory, RESULTS_FILE)
    temporary = f"{path}.tmp-{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.writelines(f"{name} = {results[name]}\n" for name in sorted(results))
    os.replace(temporary, path)
    return path
