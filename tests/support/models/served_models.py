"""Tiny models with heads, as exports take them."""

import warnings

import keras
import numpy as np
import tensorflow as tf

from bert_tf.checkpoint import save_google_checkpoint
from bert_tf.checkpoint_files import checkpoint_path
from model_formats.encoders import ENCODERS
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import ModelFolder
from tests.support.models.model_folders import write_model
from tests.support.tiny_models import SIZES

# Larger than usual, so that outputs differ from text to text.
WEIGHTS = {"initializer_range": 0.4}


def loaded_model(make_head, task, tokenizer, settings, kind="bert", positions=None, **sizes):
    """A `LoadedModel` with random weights; `make_head` puts a head on an encoder."""
    keras.utils.set_random_seed(3)
    sizes = {**SIZES, "vocab_size": tokenizer.vocab_size, **WEIGHTS, **sizes}
    width = {"embedding_size": 16} if kind == "albert" else {}
    config = ENCODERS[kind].config(**width | sizes)
    model, labels = make_head(ENCODERS[kind].model_class(config)), settings.get("labels") or ""
    return LoadedModel(
        model=model, task=task, model_type=kind, config=config, tokenizer=tokenizer,
        labels=tuple(labels.split(",")) if labels else (), missing=(), settings=settings,
        trained_positions=positions, source="a test", folder=ModelFolder(""),
    )  # fmt: skip


def strong_head(model, deviation=0.5):
    """Random weights for the head too, of which Google's initial ones are too small to matter."""
    rng = np.random.default_rng(5)
    for weight in model.head.trainable_variables:
        if len(weight.shape) > 1:  # a bias would favour one class for all texts
            weight.assign(rng.normal(0, deviation, weight.shape))
    return model


def write_strong_folder(folder, task, kind="bert", **settings):
    """Writes a folder with a fine-tuned model that tells texts apart."""
    made = write_model(folder, kind, task, sizes=WEIGHTS, **settings)
    save_google_checkpoint(strong_head(made), checkpoint_path(folder, 3))


def call_signature(made, name="serving_default", **inputs):
    """A signature's outputs as arrays; strings are decoded."""
    outputs = made.functions[name](**{key: tf.constant(value) for key, value in inputs.items()})
    return {key: as_array(value) for key, value in outputs.items()}


def as_array(tensor):
    values = tensor.numpy()
    if values.dtype == object:
        return np.array([text.decode() for text in values.ravel()], object).reshape(values.shape)
    return values


def quietly(make, *arguments, **options):
    """Calls a tokenizer's class without its warnings about odd vocabularies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*arguments, **options)
