"""Reads what the programs of the reference run have found, in their folders; keeps the curves."""

import json
import os
import zlib
from pathlib import Path

import numpy as np

from benchmarks.reference.measure import read_scores
from benchmarks.reference.text import REPORT
from bert_common.atomic_write import atomic_write
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import EXPORTED_NAME, exists
from bert_tf.summaries.curves import Curve, read_scalars
from create_pretraining_data.records.metadata import read_sidecar
from model_formats.adaptation.report import REPORT_FILE

RECORD_NUMBERS = ("pieces", "pieces_per_word", "unknown_share", "padding_share")

CURVES_FOLDER = "curves"

# More points do not show in print, and the files stay small.
MOST_POINTS = 60

# Tags of TensorBoard: of the training's run, of its evaluations' run.
STEP_SECONDS = "throughput/step_seconds"
EVALUATIONS = "eval"
KEPT = ("accuracy/", "loss/")


def read_text(folder):
    """The sizes of the divided text; {} before it is written."""
    path = Path(folder) / REPORT
    return read_json(path.read_text(encoding="utf-8"), path) if path.exists() else {}


def read_vocabulary(folder):
    """The number of pieces of a vocabulary and its checksum; {} before it is written."""
    path = Path(folder) / "vocab.txt"
    if not (Path(folder) / "tokenizer_config.json").exists():  # written after it
        return {}
    content = path.read_bytes()
    return {"pieces": content.count(b"\n"), "crc32": zlib.crc32(content)}


def read_records(path):
    """What the JSON file beside a record file says of it; {} before it is written."""
    described = read_sidecar(path) if os.path.exists(path) else None
    if not described:
        return {}
    numbers = {name: described[name] for name in RECORD_NUMBERS}
    records = sum(shard["records"] for shard in described["shards"])
    return {"records": records, **numbers, "megabytes": os.path.getsize(path) / 1e6}


def read_positions(folder):
    """How many positions were repeated, and how many there are; {} before they are written."""
    if not exists(os.path.join(folder, EXPORTED_NAME)):  # written last
        return {}
    path = Path(folder) / REPORT_FILE
    numbers = read_json(path.read_text(encoding="utf-8"), path)["positions"]
    return {"positions": numbers["new"], "trained_positions": numbers["trained"]}


def read_trial(folder):
    """The seconds of an update; {} if the trial was stopped."""
    seconds = seconds_per_update(folder)
    return {"seconds_per_update": seconds} if seconds and read_scores(folder) else {}


def read_pretraining(folder):
    """The results on held-out records, the seconds of an update; {} before the last update."""
    found = read_scores(folder)
    return {**found, "seconds_per_update": seconds_per_update(folder)} if found else {}


def read_export(folder):
    """The size of an exported folder; {} before it is there."""
    files = [path for path in Path(folder).glob("**/*") if path.is_file()]
    return {"megabytes": sum(path.stat().st_size for path in files) / 1e6} if files else {}


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
