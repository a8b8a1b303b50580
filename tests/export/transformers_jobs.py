"""Rows for exported folders, and what transformers makes of them in a process of its own."""

import json
from pathlib import Path

import numpy as np

from tests.support.paths import run_python

PROGRAM = Path(__file__).with_name("transformers_outputs.py")
NAMES = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
TOLERANCE = 1e-5


def make_inputs(shape):
    """Rows of different lengths with two segments; padding is [PAD]."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(shape[-1] // 2, shape[-1] + 1, shape[:-1])
    mask = (np.arange(shape[-1]) < lengths[..., None]).astype(np.int32)
    ids = rng.integers(1, 60, shape).astype(np.int32) * mask
    segments = (np.arange(shape[-1]) >= shape[-1] // 3).astype(np.int32) * mask
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def write_job(folder, name, inputs, **more):
    """The job of a class of transformers on what is in folder/out; writes its inputs."""
    given = {NAMES.get(key, key): value.astype(np.int64) for key, value in inputs.items()}
    np.savez(folder / "inputs.npz", **given, **more)
    paths = {key: str(folder / f"{key}.npz") for key in ("inputs", "outputs")}
    return {"folder": str(folder / "out"), "class": name, **paths}


def run_jobs(folder, jobs):
    """Has transformers write the outputs of all of them."""
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs))
    done = run_python(PROGRAM, path)
    assert done.returncode == 0, done.stderr[-3000:]


def assert_close(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape and np.abs(expected).max() > 0.05
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0)
