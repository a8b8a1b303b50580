"""Reads what the reference implementations computed (SOURCE.md in tests/data's folders)."""

import json

import numpy as np
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel, PretrainingModel
from bert_tf.checkpoint import google_name, google_variables
from bert_tf.optimization import OPTIMIZERS, WarmupPolynomialDecay
from model_formats.transformers_files.names import BERT_NAMES, TIED_NAMES
from tests.support.paths import TEST_DATA
from tests.support.tiny_models import assert_close

GOLDEN = TEST_DATA / "golden"

# Tolerances as the manifest of the golden files suggests them.
FORWARD = 1e-5
ALL_MASKED = 2e-3  # scores are rounded to about 1/1024 by the addition of -10000
GRADIENT = 1e-5  # of the tensor's largest entry ...
GRADIENT_FLOOR = 0.1  # ... or of this: the key bias has a gradient that is exactly zero
TRAJECTORY = 1e-5


def arrays(folder, name):
    """The arrays of one .npz file."""
    with np.load(GOLDEN / folder / name) as file:
        return dict(file)


def facts(folder, name):
    """One .json file."""
    return json.loads((GOLDEN / folder / name).read_text())


def encoder(folder):
    """An encoder of the folder's configuration, with initial weights."""
    path = GOLDEN / folder / "albert_config.json"
    if path.exists():
        return AlbertModel(AlbertConfig.from_json_file(path))
    return BertModel(BertConfig.from_json_file(GOLDEN / folder / "bert_config.json"))


def pretraining_model(folder):
    """A pre-training model of the folder's configuration, with initial weights."""
    return PretrainingModel(encoder(folder))


def set_weights(model, values):
    """Sets every weight of the model from a dict by Google's names."""
    for name, variable in google_variables(model).items():
        variable.assign(values[name])


def check_gradients(model, compute, folder):
    """The gradients of what `compute()` returns are Google's; None where Google trains nothing."""
    variables, expected = google_variables(model), arrays(folder, "grads.npz")
    with tf.GradientTape() as tape:
        loss = compute()
    gradients = tape.gradient(loss, {name: v.value for name, v in variables.items()})
    assert len(variables) == len(expected) - 1  # the other entry is the global norm
    found = {k: tf.convert_to_tensor(v) for k, v in gradients.items() if v is not None}
    for name in gradients.keys() - found.keys():
        assert name.startswith("bert/pooler/") and not expected[name].any()
    wanted = {name: expected[name] for name in found}
    assert_close(found, wanted, GRADIENT, GRADIENT_FLOOR)


def batch_of(folder, step):
    """The features of Google's batch of one update."""
    prefix = f"step{step}/"
    stored = {k: v for k, v in arrays(folder, "batches.npz").items() if k.startswith(prefix)}
    batch = {key.removeprefix(prefix): tf.constant(value) for key, value in stored.items()}
    return {**batch, "next_sentence_weights": tf.ones(len(batch["input_ids"]))}


def optimizer_of(folder, name, model):
    """The named optimizer with the schedule of Google's training in the folder, built."""
    stored = facts(folder, "trajectory.json")
    sizes = (stored["init_lr"], stored["num_train_steps"], stored["num_warmup_steps"])
    optimizer = OPTIMIZERS[name](WarmupPolynomialDecay(*sizes))
    optimizer.build(model.trainable_variables)
    return optimizer


SAMPLE = TEST_DATA / "tokenization"
WORDPIECE_FILES = ("bert_wordpiece_general", "bert_wordpiece_korean", "albert_wordpiece_general")


def read_records(path):
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(records) > 30
    assert {record["lower"] for record in records} == {True, False}
    return records


def inputs_of(arrays, prefix="input/"):
    """The features among the arrays, which have the prefix; integers as int32."""
    batch = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    return {k: v if v.dtype == np.float64 else v.astype(np.int32) for k, v in batch.items()}


def by_google_names(arrays, prefix):
    """Those of transformers' BERT whose names begin with "prefix/", by Google's names."""
    found = {}
    for key, array in arrays.items():
        name = key.removeprefix(f"{prefix}/")
        if name != key and name not in TIED_NAMES:
            google = google_name(name, BERT_NAMES)
            found[google] = array.T if google.endswith("/kernel") else array
    return found
