"""Reads the results of the reference run's programs from their folders, and keeps their curves."""

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

# More points would not be visible in print, and would make the files large.
MOST_POINTS = 60

# TensorBoard's tag in the training's run, the evaluations' run, and prefixes of the tags to keep.
STEP_SECONDS = "throughput/step_seconds"
EVALUATIONS = "eval"
KEPT = ("accuracy/", "loss/")


def read_text(folder):
    """Returns the sizes of the split text; {} before it is written."""
    path = Path(folder) / REPORT
    return read_json(path.read_text(encoding="utf-8"), path) if path.exists() else {}


def read_vocabulary(folder):
    """Returns the size and the checksum of a vocabulary; {} before it is written."""
    path = Path(folder) / "vocab.txt"
    if not (Path(folder) / "tokenizer_config.json").exists():  # written after the vocabulary
        return {}
    content = path.read_bytes()
    return {"pieces": content.count(b"\n"), "crc32": zlib.crc32(content)}


def read_records(path):
    """Returns numbers from the JSON file next to a record file; {} before it is written."""
    described = read_sidecar(path) if os.path.exists(path) else None
    if not described:
        return {}
    numbers = {name: described[name] for name in RECORD_NUMBERS}
    records = sum(shard["records"] for shard in described["shards"])
    return {"records": records, **numbers, "megabytes": os.path.getsize(path) / 1e6}


def read_positions(folder):
    """Returns the numbers of trained and all positions; {} before they are written."""
    if not exists(os.path.join(folder, EXPORTED_NAME)):  # written last
        return {}
    path = Path(folder) / REPORT_FILE
    numbers = read_json(path.read_text(encoding="utf-8"), path)["positions"]
    return {"positions": numbers["new"], "trained_positions": numbers["trained"]}


def read_trial(folder):
    """Returns the seconds of an update; {} if the trial was stopped."""
    seconds = seconds_per_update(folder)
    return {"seconds_per_update": seconds} if seconds and read_scores(folder) else {}


def read_pretraining(folder):
    """Returns held-out results and the seconds of an update; {} before the last update."""
    found = read_scores(folder)
    return {**found, "seconds_per_update": seconds_per_update(folder)} if found else {}


def read_export(folder):
    """Returns the size of an exported folder; {} before it exists."""
    files = [path for path in Path(folder).glob("**/*") if path.is_file()]
    return {"megabytes": sum(path.stat().st_size for path in files) / 1e6} if files else {}


def seconds_per_update(folder):
    """Returns the median of a training's curve of update times; None if it has no points.

    The curve's first point excludes the first updates, whose time includes compilation.
    """
    curve = read_scalars(folder).get(STEP_SECONDS)
    return float(np.median(curve.values)) if curve else None


def held_out_curves(folder):
    """Returns the thinned curves of the evaluations during training, a dict tag -> `Curve`."""
    curves = read_scalars(os.path.join(folder, EVALUATIONS))
    return {tag: _thin(curve) for tag, curve in curves.items() if tag.startswith(KEPT)}


def _thin(curve):
    """Keeps every nth point and the last one, at most `MOST_POINTS` + 1."""
    every = -(-len(curve.steps) // MOST_POINTS)
    chosen = sorted({*range(0, len(curve.steps), every), len(curve.steps) - 1})
    return Curve([curve.steps[i] for i in chosen], [curve.values[i] for i in chosen])


def curves_path(ledger, name):
    """Returns the path of the file with the curves of a run."""
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
