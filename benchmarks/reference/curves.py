"""Keeps the curves of a training's evaluations in a small file, and its speed."""

import json
import os

import numpy as np

from bert_common.atomic_write import atomic_write
from bert_tf.summaries.curves import Curve, read_scalars

CURVES_FOLDER = "curves"

# More points do not show in print, and the files stay small.
MOST_POINTS = 60

# Tags of TensorBoard: of the training's run, of its evaluations' run.
STEP_SECONDS = "throughput/step_seconds"
EVALUATIONS = "eval"
KEPT = ("accuracy/", "loss/")


def seconds_per_update(folder):
    """The median over a training's curve; None if it has no point.

    The first updates, whose time includes compilation, are not part of the curve's first point.
    """
    curve = read_scalars(folder).get(STEP_SECONDS)
    return float(np.median(curve.values)) if curve else None


def held_out_curves(folder):
    """The curves of the evaluations on the way: a dict tag -> `Curve`, thinned out."""
    curves = read_scalars(os.path.join(folder, EVALUATIONS))
    return {tag: _thin(curve) for tag, curve in curves.items() if tag.startswith(KEPT)}


def _thin(curve):
    """Every nth point, and the last one."""
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
