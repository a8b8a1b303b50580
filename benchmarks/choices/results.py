"""The results that the pieces' programs leave in their folders."""

import os
from pathlib import Path

import numpy as np

from bert_common.atomic_write import atomic_write
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import latest_checkpoint, step_of
from create_pretraining_data.records.metadata import read_sidecar
from run_scripts.reference.curves import STEP_SECONDS, read_scalars
from run_scripts.reference.measure import read_scores as read_results

# On a shared machine most updates are slowed down, so a fast one says how long one takes.
FAST_QUANTILE = 0.1

# One of these, by the model's type or the records.
SENTENCE_ACCURACIES = ("next_sentence_accuracy", "sentence_order_accuracy")

RECORD_NUMBERS = ("pieces_per_word", "unknown_share", "padding_share")

__all__ = [
    "read_pretraining", "read_records", "read_results", "read_text", "read_trial",
    "read_vocabulary", "write_results",
]  # fmt: skip


def write_results(folder, results):
    """Writes a dict of numbers as eval_results.txt, and prints it."""
    os.makedirs(folder, exist_ok=True)
    text = "".join(f"{name} = {value}\n" for name, value in results.items())
    with atomic_write(os.path.join(folder, "eval_results.txt")) as file:
        file.write(text.encode())
    print(text, end="")


def read_text(folder):
    """The numbers of documents in report.json; {} without one."""
    path = Path(folder) / "report.json"
    return read_json(path.read_bytes(), str(path)) if path.exists() else {}


def read_vocabulary(folder):
    """The number of lines of a vocabulary; {} without one."""
    path = Path(folder) / "vocab.txt"
    if not (path.exists() and (path.parent / "tokenizer_config.json").exists()):
        return {}
    return {"pieces": path.read_bytes().count(b"\n")}


def read_records(folder):
    """What the JSON file beside the records says of them; {} without one."""
    path = os.path.join(folder, "records.tfrecord")
    described = read_sidecar(path) if os.path.exists(path) else None
    if not described:
        return {}
    rows = sum(shard["records"] for shard in described["shards"])
    return {"records": rows, **{name: described[name] for name in RECORD_NUMBERS}}


def read_pretraining(folder):
    """The results on held-out records, and the seconds of an update; {} before they are there.

    The accuracy on pairs of sentences, of either objective, is "sentence_accuracy" too.
    """
    found = read_results(folder)
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
    curve = read_scalars(folder).get(STEP_SECONDS)
    return {"seconds_per_update": float(np.quantile(curve.values, FAST_QUANTILE))} if curve else {}
