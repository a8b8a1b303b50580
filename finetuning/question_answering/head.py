"""Chooses the span head or the beam search head by a folder's settings."""

from collections.abc import Mapping
from typing import Any

import keras

from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.span_head import SpanModel


def from_settings(
    encoder: keras.Model, settings: Mapping[str, Any]
) -> tuple[SpanModel | BeamSpanModel, tuple[str, ...]]:
    """Returns the model that a folder's settings describe, with random weights, and no labels."""
    starts, ends = settings["start_n_top"], settings["end_n_top"]
    return (BeamSpanModel(encoder, starts, ends) if starts else SpanModel(encoder)), ()
