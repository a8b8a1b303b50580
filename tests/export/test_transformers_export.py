"""transformers on CPU torch loads every exported head: no key missing or left over, same outputs.

Shapes: B batch, T tokens, C options.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from korean_bert import load_model
from model_formats.electra_generator import generator_alone
from model_formats.huggingface.export import export
from model_formats.load_folder import load_folder
from tests.support.libraries import needs_torch
from tests.support.models.model_folders import drop_weights, write_folder
from tests.support.models.served_models import write_strong_folder
from tests.support.paths import run_python

pytestmark = [pytest.mark.slow, needs_torch]

PROGRAM = Path(__file__).with_name("transformers_outputs.py")
NAMES = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
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
    "electra": ("electra", {"generator_size": 0.25}),
    "electra-wide": ("electra", {"embedding_size": 32, "generator_size": 0.5}),
}

# Head -> task, settings, prefix of the weights that its checkpoint lacks, class, outputs -> ours.
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
    "discriminator": ("pretraining", {}, None, "ForPreTraining", {
        "logits": "discriminator_logits"}),
    "generator": ("pretraining", {}, None, "ForMaskedLM", {"logits": "masked_lm_logits"}),
}  # fmt: skip
# An ELECTRA has two networks, and no pooler.
OF_ELECTRA, NOT_OF_ELECTRA = ("discriminator", "generator"), ("pretraining", "encoder")
CASES = [
    f"{network} {head}"
    for network in NETWORKS
    for head in HEADS
    if head not in (NOT_OF_ELECTRA if network.startswith("electra") else OF_ELECTRA)
]

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


def prepare(case, folder):
    """Makes a model, exports it; returns it, its inputs, and the job for transformers."""
    network, head = case.split()
    (kind, sizes), (task, settings, missing, suffix, _) = NETWORKS[network], HEADS[head]
    names = ("generator/", "discriminator_predictions/") if head in OF_ELECTRA else ()
    write_folder(folder / "in", kind, task, sizes, names, **settings)
    if missing:
        drop_weights(folder / "in" / "model.ckpt-3", missing)
    loaded = load_folder(str(folder / "in"))
    loaded = generator_alone(loaded) if head == "generator" else loaded
    (folder / "out").mkdir()
    # Shards in one case.
    export(loaded, str(folder / "out"), max_shard_size=20_000 if case == "bert tags" else None)
    inputs = make_inputs((3, 4, 16) if task == "multiple_choice" else (4, 16))
    labels = {"labels": np.array(*LABELS[head])} if head in LABELS else {}
    return loaded, inputs, write_job(folder, kind.capitalize() + suffix, inputs, **labels)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Case -> the loaded model, its inputs, the job; transformers has computed all outputs."""
    top = tmp_path_factory.mktemp("exported")
    made = {case: prepare(case, top / case.replace(" ", "-")) for case in CASES}
    run_jobs(top, [job for _, _, job in made.values()])
    return made


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
        assert_close(theirs["loss"], np.mean(loaded.model.example_losses(ours, batch)))
    if loaded.labels:
        assert theirs["_labels"].tolist() == list(loaded.labels)


def test_the_two_forms_of_gelu_differ(exported):
    """Otherwise the tolerance would hide a wrong one."""
    outputs = []
    for case in ("bert pretraining", "bert-erf pretraining"):
        with np.load(exported[case][2]["outputs"]) as file:
            outputs.append(file["prediction_logits"])
    assert np.abs(outputs[0] - outputs[1]).max() > 3 * TOLERANCE


# Task -> what transformers_outputs.py predicts, and of which texts.
TEXT = "나는 학교에 갔다. the book is red"
PREDICTED = {
    "ner": {"what": "tags", "text": TEXT, "starts": [0, 3, 7, 11, 15, 20, 23]},
    "question_answering": {
        "what": "span", "pair": ["is the book red ?", "the book is red 나는"], "longest": 6,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    """Task -> the model, what is asked, what transformers predicts."""
    top, made = tmp_path_factory.mktemp("predicted"), {}
    for task, asked in PREDICTED.items():
        write_strong_folder(top / task, task)
        model, out = load_model(top / task), top / task / "out"
        out.mkdir()
        export(model.loaded, str(out))
        made[task] = model, {**asked, "folder": str(out), "outputs": f"{out}.npz"}
    run_jobs(top, [job for _, job in made.values()])
    return {task: (*given, dict(np.load(given[1]["outputs"]))) for task, given in made.items()}


def test_tags(predicted):
    model, asked, expected = predicted["ner"]
    found = model.predict(asked["text"])
    assert [start for start, _ in found.units] == asked["starts"]
    assert list(found.tags) == expected["tags"].tolist()
    np.testing.assert_allclose(found.probabilities, expected["shares"], atol=1e-5)


def test_span(predicted):
    model, asked, expected = predicted["question_answering"]
    found = model.predict(tuple(asked["pair"])).answer
    assert [found.start, found.end] == expected["span"].tolist()
