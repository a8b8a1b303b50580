"""Reads what the pieces' programs have found, in their folders."""

import functools
import json
import os
import statistics
from pathlib import Path

from bert_tf.checkpoint_files import latest_checkpoint, step_of
from create_pretraining_data.records.metadata import read_sidecar
from run_scripts.reference.measure import read_scores as read_results

# On a shared machine most updates are slowed down, so a fast one says how long one takes.
FAST_QUANTILE = 0.1

RECORD_NUMBERS = ("records", "pieces_per_word", "unknown_share", "padding_share")

__all__ = ["read_pretraining", "read_records", "read_results", "read_trial", "read_vocabulary"]


def read_vocabulary(folder):
    """The number of lines of a vocabulary; {} without one."""
    path = Path(folder) / "vocab.txt"
    if not (path.exists() and (path.parent / "tokenizer_config.json").exists()):
        return {}
    return {"pieces": len(path.read_text(encoding="utf-8").splitlines())}


def read_records(folder):
    """What the JSON file beside the records says of them; {} without one."""
    path = os.path.join(folder, "records.tfrecord")
    described = read_sidecar(path) if os.path.exists(path) else None
    return {name: described[name] for name in RECORD_NUMBERS} if described else {}


def read_pretraining(folder):
    """The results on held-out records, and the seconds of an update; {} before they are there."""
    found = read_results(folder)
    return {**found, **_seconds_per_update(folder)} if found else {}


def read_trial(folder, updates):
    """The seconds of an update; {} before the last of the updates is saved."""
    checkpoint = latest_checkpoint(folder)
    return _seconds_per_update(folder) if checkpoint and step_of(checkpoint) == updates else {}


def _seconds_per_update(folder):
    """The fast quantile over a training's curve, as a dict; {} for a curve without points."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(folder, size_guidance={"tensors": 0})  # 0: all points
    events.Reload()
    name = "throughput/steps_per_second"
    if name not in events.Tags()["tensors"]:
        return {}
    rates = [float(make_ndarray(point.tensor_proto)) for point in events.Tensors(name)]
    fast = statistics.quantiles(rates, n=10, method="inclusive")[-1] if rates[1:] else rates[0]
    return {"seconds_per_update": 1 / fast}
