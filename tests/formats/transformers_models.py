"""Compares what a folder of transformers computes here with what transformers computed."""

import json

import numpy as np

from bert_tf import PretrainingModel
from bert_tf.checkpoint import load_arrays
from bert_tf.pretraining import example_losses
from electra_tf import ReplacedTokensModel
from finetuning.classification.head import SequenceClassifier
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner.head import TokenClassifier
from finetuning.question_answering.span_head import SpanModel
from model_formats.model_folder import ModelFolder
from model_formats.weights import open_weights
from tests.support.paths import TEST_DATA

FOLDERS = TEST_DATA / "transformers"
TOLERANCE = 1e-5  # absolute, of numbers below about 3

LABELS = 3  # of the heads, in write_folders.py

# The end of the name of transformers' class -> the function of an encoder that makes our model.
HEADS = {
    "SequenceClassification": lambda encoder: SequenceClassifier(encoder, LABELS),
    "TokenClassification": lambda encoder: TokenClassifier(encoder, LABELS),
    "QuestionAnswering": SpanModel,
    "MultipleChoice": MultipleChoiceModel,
}


# What an ELECTRA's discriminator alone lacks.
GENERATOR = ("generator/", "generator_predictions/")


def new_encoder(folder):
    """An encoder of a folder's configuration, with initial weights."""
    folder = ModelFolder.open(str(folder))
    return folder.encoder.model_class(folder.config)


def load_model(folder, allow_missing=("cls/predictions/",)):
    """The model of a folder, and the `LoadReport`."""
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    make = next((make for end, make in HEADS.items() if name.endswith(end)), PretrainingModel)
    if name == "ElectraForPreTraining":
        make, allow_missing = ReplacedTokensModel, GENERATOR
    model = make(new_encoder(folder))
    allowed = allow_missing if make in (PretrainingModel, ReplacedTokensModel) else ()
    return model, load_arrays(model, open_weights(str(folder)), allowed)


def compare(folder, tolerance=TOLERANCE):
    """Checks a folder's outputs and losses; returns the `LoadReport`."""
    with np.load(folder / "expected.npz") as file:
        stored = dict(file)
    inputs = {k.removeprefix("input/"): v for k, v in stored.items() if k.startswith("input/")}
    expected = {k: v for k, v in stored.items() if not k.startswith("input/")}
    model, report = load_model(folder)
    sequences = {k: inputs[k] for k in ("input_ids", "input_mask", "segment_ids")}
    if isinstance(model, MultipleChoiceModel):
        outputs = model({k: v[None] for k, v in sequences.items()})
    else:
        outputs = model(inputs if type(model) is PretrainingModel else sequences)
    found = {k: v.numpy() for k, v in {**model.encoder(sequences), **outputs}.items()}
    if "loss" in expected:
        if "next_sentence_logits" not in expected:
            del inputs["next_sentence_labels"]
        losses = example_losses(outputs, inputs)
        found["loss"] = sum(loss.numpy().mean() for loss in losses.values())
    tokens = inputs["input_mask"].astype(bool)  # what padding's vectors are, no one reads
    for name, value in expected.items():
        of_tokens = value.shape[:2] == tokens.shape
        mine, theirs = (found[name][tokens], value[tokens]) if of_tokens else (found[name], value)
        np.testing.assert_allclose(mine, theirs, atol=tolerance, rtol=0, err_msg=name)
        assert np.abs(theirs).max() > 100 * tolerance, name
    return report
