"""Reads the curves of a training, for the pages in a small file.

The trainings write them for TensorBoard; they are read here without TensorFlow.
"""

import json
import os
from typing import NamedTuple

import numpy as np

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.json_text import read_json
from create_pretraining_data.records.tfrecord import find_frames

CURVES_FOLDER = "curves"

# More points do not show in print, and the files stay small.
MOST_POINTS = 60

# For times that are compared: on a shared machine most updates are slowed down, so a fast one says
# how long one takes.
FAST_QUANTILE = 0.1

# Tags of TensorBoard: of the training's run, of its evaluations' run.
STEP_SECONDS = "throughput/step_seconds"
EVALUATIONS = "eval"
KEPT = ("accuracy/", "loss/")


class Curve(NamedTuple):
    """A number of a training, over its updates."""

    steps: list
    values: list


def read_scalars(folder):
    """The scalars in a folder's event files: a dict tag -> `Curve`; empty without files."""
    from tensorboard.compat.proto.event_pb2 import Event

    points = {}
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for name in sorted(name for name in names if name.startswith("events.out.tfevents.")):
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        for start, end, intact in find_frames(content):
            event = Event.FromString(content[start + 12 : end - 4]) if intact else Event()
            for value in event.summary.value:
                number = _number(value)
                if number is not None:
                    points.setdefault(value.tag, {})[event.step] = number
    return {
        tag: Curve(sorted(of_steps), [of_steps[step] for step in sorted(of_steps)])
        for tag, of_steps in points.items()
    }


def _number(value):
    """The number of an event's value; None for a text, an image, a histogram."""
    from tensorboard.util.tensor_util import make_ndarray

    if value.HasField("simple_value"):
        return value.simple_value
    if value.metadata.plugin_data.plugin_name != "scalars":
        return None
    return float(make_ndarray(value.tensor))


def seconds_per_update(folder, quantile=0.5):
    """A quantile, the median by default, over a training's curve; None if it has no point.

    The first updates, whose time includes compilation, are not part of the curve's first point.
    """
    curve = read_scalars(folder).get(STEP_SECONDS)
    return float(np.quantile(curve.values, quantile)) if curve else None


def held_out_curves(folder):
    """The curves of the evaluations on the way: a dict tag -> `Curve`, thinned out."""
    curves = read_scalars(os.path.join(folder, EVALUATIONS))
    return {tag: _thin(curve) for tag, curve in curves.items() if tag.startswith(KEPT)}


def _thin(curve):
    """Every so many-th point, and the last one."""
    every = -(-len(curve.steps) // MOST_POINTS)
    chosen = sorted({*range(0, len(curve.steps), every), len(curve.steps) - 1})
    return Curve([curve.steps[i] for i in chosen], [curve.values[i] for i in chosen])


def curves_path(ledger, name):
    """The file that keeps the curves of a run of a ledger."""
    folder = os.path.join(os.path.dirname(ledger), CURVES_FOLDER)
    return os.path.join(folder, f"{name.replace('/', '+')}.json")


def write_curves(path, curves):
    """Writes a dict tag -> `Curve`."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rounded = {
        tag: {"steps": curve.steps, "values": [float(f"{v:.5g}") for v in curve.values]}
        for tag, curve in sorted(curves.items())
    }
    with atomic_write(path) as file:
        file.write(json.dumps(rounded, separators=(",", ":")).encode() + b"\n")


def read_curves(path):
    """Reads what `write_curves` wrote; an empty dict without a file."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        values = read_json(file.read(), path)
    try:
        return {tag: Curve(**curve) for tag, curve in values.items()}
    except (TypeError, AttributeError):
        raise InputError(f"{path} must hold curves. Received: {values!r:.100}") from None
