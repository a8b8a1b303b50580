"""transformers on CPU torch loads every exported head: no key missing or left over, same outputs.

Shapes: B batch, T tokens, C options.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_tf.checkpoint import google_arrays, write_arrays
from model_formats.huggingface.export import export
from model_formats.load_folder import load_folder
from tests.support.models.model_folders import write_folder

LIBRARIES = ("torch", "transformers")
ABSENT = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ABSENT), reason=f"needs {', '.join(ABSENT)} (extra bench)"),
]

PROGRAM = Path(__file__).with_name("transformers_outputs.py")
TOLERANCE = 1e-5

ERF = {"hidden_act": "gelu_erf"}
RELU = {"layer_norm_eps": 1e-5, "hidden_act": "relu"}
GROUPS = {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}
NETWORKS = {
    "bert": ("bert", {}),
    "bert-erf": ("bert", ERF),
    "bert-relu": ("bert", RELU),
    "albert": ("albert", {}),
    "albert-erf": ("albert", ERF),
    "albert-groups": ("albert", GROUPS),
    "albert-wide": ("albert", {"embedding_size": 32}),
}

# Head -> task, settings, prefix of the weights that its checkpoint lacks, class, outputs ->
# ours.
SCORES = {"task_name": "klue-sts", "labels": None}
HEADS = {
    "pretraining": ("pretraining", {}, None, "ForPreTraining", {
        "prediction_logits": "masked_lm_logits", "seq_relationship_logits": "next_sentence_logits",
        "sop_logits": "next_sentence_logits"}),
    "masked": ("pretraining", {}, "cls/seq", "ForMaskedLM", {"logits": "masked_lm_logits"}),
    "encoder": ("pretraining", {}, "cls/", "Model", {
        "last_hidden_state": "sequence_output", "pooler_output": "pooled_output"}),
    "classes": ("classification", {}, None, "ForSequenceClassification", {"logits": "logits"}),
    "scores": ("classification", SCORES, None, "ForSequenceClassification", {"logits": "logits"}),
    "sets": ("classification", {"task_type": "multi_label"}, None, "ForSequenceClassification",
             {"logits": "logits"}),
    "tags": ("ner", {}, None, "ForTokenClassification", {"logits": "logits"}),
    "spans": ("question_answering", {}, None, "ForQuestionAnswering", {
        "start_logits": "start_logits", "end_logits": "end_logits"}),
    "options": ("multiple_choice", {}, None, "ForMultipleChoice", {"logits": "logits"}),
}  # fmt: skip
CASES = [f"{network} {head}" for network in NETWORKS for head in HEADS]

# What transformers trains each kind of classifier with: its labels, and ours.
LABELS = {
    "classes": ([0, 1, 2, 1], np.int64),
    "scores": ([2.5, 0.1, 4.0, 1.0], np.float32),
    "sets": ([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]], np.float32),
}


def make_inputs(shape):
    """Rows of different lengths with two segments; padding is [PAD]."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(shape[-1] // 2, shape[-1] + 1, shape[:-1])
    mask = (np.arange(shape[-1]) < lengths[..., None]).astype(np.int32)
    ids = rng.integers(1, 60, shape).astype(np.int32) * mask
    segments = (np.arange(shape[-1]) >= shape[-1] // 3).astype(np.int32) * mask
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def drop(prefix, start):
    """Removes the variables whose names begin so from a checkpoint."""
    arrays = google_arrays(str(prefix))
    kept = {n: arrays.read(n) for n in arrays.shapes if not n.startswith(start)}
    write_arrays(str(prefix), kept)


def prepare(case, folder):
    """Makes a model, exports it; returns it, its inputs, and the job for transformers."""
    network, head = case.split()
    (kind, sizes), (task, settings, missing, suffix, _) = NETWORKS[network], HEADS[head]
    write_folder(folder / "in", kind, task, sizes, **settings)
    if missing:
        drop(folder / "in" / "model.ckpt-3", missing)
    loaded = load_folder(str(folder / "in"))
    (folder / "out").mkdir()
    # Shards in one case.
    export(loaded, str(folder / "out"), max_shard_size=20_000 if case == "bert tags" else None)
    inputs = make_inputs((3, 4, 16) if task == "multiple_choice" else (4, 16))
    given = {
        "input_ids": inputs["input_ids"].astype(np.int64),
        "attention_mask": inputs["input_mask"],
        "token_type_ids": inputs["segment_ids"].astype(np.int64),
    }
    if head in LABELS:
        values, dtype = LABELS[head]
        given["labels"] = np.array(values, dtype)
    np.savez(folder / "inputs.npz", **given)
    paths = {name: str(folder / f"{name}.npz") for name in ("inputs", "outputs")}
    name = {"bert": "Bert", "albert": "Albert"}[kind] + suffix
    return loaded, inputs, {"folder": str(folder / "out"), "class": name, **paths}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Case -> the loaded model, its inputs, the job; transformers has computed all outputs."""
    top = tmp_path_factory.mktemp("exported")
    made = {case: prepare(case, top / case.replace(" ", "-")) for case in CASES}
    jobs = top / "jobs.json"
    jobs.write_text(json.dumps([job for _, _, job in made.values()]))
    done = subprocess.run([sys.executable, PROGRAM, jobs], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return made


def assert_close(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape and np.abs(expected).max() > 0.05
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("case", CASES)
def test_every_head(exported, case):
    loaded, inputs, job = exported[case]
    head = case.split()[1]
    config = json.loads(Path(job["folder"], "config.json").read_text())
    assert config["architectures"] == [job["class"]]
    positions = np.tile(np.arange(16, dtype=np.int32), (4, 1))  # [B, T], every one
    model = loaded.model.encoder if head == "encoder" else loaded.model
    ours = model({**inputs, "masked_lm_positions": positions})
    names = HEADS[head][-1]
    with np.load(job["outputs"]) as file:
        theirs = dict(file)
    pairs = [(theirs[name], ours[names[name]]) for name in theirs if name in names]
    assert len(pairs) == (2 if head in ("pretraining", "encoder", "spans") else 1)
    for found, expected in pairs:
        assert_close(found, expected)
    if head in LABELS:
        values, dtype = LABELS[head]
        batch = {"label_ids": np.array(values, np.float32 if dtype == np.float32 else np.int32)}
        assert_close(theirs["loss"], np.mean(loaded.model.losses(ours, batch)))
    if loaded.labels:
        assert theirs["_labels"].tolist() == list(loaded.labels)


def test_the_two_forms_of_gelu_differ(exported):
    """Otherwise the tolerance would hide a wrong one."""
    outputs = []
    for case in ("bert pretraining", "bert-erf pretraining"):
        with np.load(exported[case][2]["outputs"]) as file:
            outputs.append(file["prediction_logits"])
    assert np.abs(outputs[0] - outputs[1]).max() > 3 * TOLERANCE
