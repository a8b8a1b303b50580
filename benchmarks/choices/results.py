"""The results that the pieces' programs leave in their folders."""

import os

from bert_common.atomic_write import atomic_write
from bert_tf.checkpoint_files import latest_checkpoint, step_of
from run_scripts.reference import scores
from run_scripts.reference.curves import FAST_QUANTILE, seconds_per_update
from run_scripts.reference.measure import read_scores

# One of these, by the model's type or the records.
SENTENCE_ACCURACIES = ("next_sentence_accuracy", "sentence_order_accuracy")


def write_results(folder, results):
    """Writes a dict of numbers as eval_results.txt, and prints it."""
    os.makedirs(folder, exist_ok=True)
    text = "".join(f"{name} = {value}\n" for name, value in results.items())
    with atomic_write(os.path.join(folder, "eval_results.txt")) as file:
        file.write(text.encode())
    print(text, end="")


def read_records(folder):
    """What the JSON file beside the records says of them; {} without one."""
    return scores.read_records(os.path.join(folder, "records.tfrecord"))


def read_pretraining(folder):
    """The results on held-out records, and the seconds of an update; {} before they are there.

    The accuracy on pairs of sentences, of either objective, is "sentence_accuracy" too.
    """
    found = read_scores(folder)
    for name in SENTENCE_ACCURACIES:
        if name in found:
            found["sentence_accuracy"] = found[name]
    return {**found, **_seconds_per_update(folder)} if found else {}


def read_trial(folder, updates):
    """The seconds of an update; {} before the last of the updates is saved."""
    checkpoint = latest_checkpoint(folder)
    return _seconds_per_update(folder) if checkpoint and step_of(checkpoint) == updates else {}


def _seconds_per_update(folder):
    """The fast quantile over a training's curve, as a dict; {} without a curve."""
    seconds = seconds_per_update(folder, FAST_QUANTILE)
    return {} if seconds is None else {"seconds_per_update": seconds}
