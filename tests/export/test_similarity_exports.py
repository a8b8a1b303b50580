"""The exports of a model of vectors give its vectors, in a process of their own."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from finetuning.inputs import encode_pairs, pad_rows
from finetuning.similarity.ranking import unit_vectors
from korean_bert import load_model
from run_scripts.conversion.export_model import FORMATS
from tests.support.models.model_folders import export_folder, write_folder
from tests.support.paths import run_python

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("served_vectors.py")
TEXTS = ["the book is red.", "나는 학교에 갔다.", "is the book reds?", "나는 the 학교에 " * 9]

# Folder -> format, precision, how far a vector may be from ours.
EXPORTS = {
    "saved_model": ("saved_model", None, 1e-5),
    "onnx": ("onnx", "float32", 1e-5),
    "onnx int8": ("onnx", "int8", None),
    "litert": ("litert", "float32", 1e-5),
    "litert int8": ("litert", "int8", None),
}

# Of int8: the least cosine of a vector with ours.
LEAST_COSINE = 0.99


@pytest.mark.parametrize(
    ("kind", "pooling"), [("bert", "mean"), ("albert", "cls"), ("bert", "max")]
)
def test_every_export_has_our_vectors(tmp_path, kind, pooling):
    write_folder(tmp_path / "model", kind, "similarity", pooling=pooling, max_seq_length=12)
    model = load_model(tmp_path / "model")
    rows = pad_rows(encode_pairs(model.tokenizer, [(text, None) for text in TEXTS], 12), 12, 0)
    np.savez(tmp_path / "rows.npz", **rows)
    jobs = {}
    for name, (form, precision, _) in EXPORTS.items():
        if any(importlib.util.find_spec(library) is None for library in FORMATS[form].libraries):
            continue
        flags = [f"--precision={precision}"] if precision else []
        folder = export_folder(tmp_path / "model", tmp_path / name, form, *flags)
        jobs[name] = {
            "format": form, "folder": str(folder), "outputs": str(tmp_path / f"{name}.npy"),
            "inputs": str(tmp_path / "rows.npz"), "texts": TEXTS,
        }  # fmt: skip
    (tmp_path / "jobs.json").write_text(json.dumps(list(jobs.values())))
    done = run_python(PROGRAM, tmp_path / "jobs.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = model.embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=-1), 1, atol=1e-6)
    for name, job in jobs.items():
        found, tolerance = np.load(job["outputs"]), EXPORTS[name][2]
        if tolerance is None:
            cosines = np.sum(unit_vectors(found) * expected, axis=-1)
            assert LEAST_COSINE < cosines.min() < 1 - 1e-9, (name, cosines)
        else:
            np.testing.assert_allclose(found, expected, atol=tolerance, err_msg=name)
