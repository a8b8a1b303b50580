"""The heads of downstream tasks on tiny encoders, and random batches of each."""

from typing import NamedTuple

import numpy as np

from finetuning.classification.head import SequenceClassifier
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner.head import TokenClassifier
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.span_head import SpanModel
from tests.support.tiny_models import tiny_model

TAGS = 5


def random_rows(shape, shortest):
    """Ids of random lengths along the last axis, and a mask of them."""
    rng, length = np.random.default_rng(1), shape[-1]
    lengths = rng.integers(shortest, length + 1, shape[:-1])
    mask = (np.arange(length) < lengths[..., None]).astype(np.int32)
    ids = (rng.integers(1, 60, shape) * mask).astype(np.int32)
    return rng, {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}


def fills(size):
    """Weights of rows of which the last two only fill the batch."""
    return (np.arange(size) < size - 2).astype(np.float32)


def labelled_batch(classes, size=8):
    """Random examples of classes, or of one score."""
    rng, rows = random_rows((size, 12), 4)
    labels = rng.integers(0, classes, size) if classes > 1 else 5 * rng.random(size)
    labels = labels.astype(np.int32 if classes > 1 else np.float32)
    return {**rows, "label_ids": labels, "label_weights": fills(size)}


def tagged_batch(size=8, length=12):
    """Random rows without a weight at [CLS], [SEP] and padding."""
    rng, rows = random_rows((size, length), 4)
    ends = rows["input_mask"].sum(axis=1, keepdims=True) - 1
    weights = (np.arange(length) > 0) * (np.arange(length) < ends) * fills(size)[:, None]
    labels = rng.integers(0, TAGS, (size, length)).astype(np.int32)
    return {**rows, "token_label_ids": labels, "token_label_weights": weights.astype(np.float32)}


def asked_batch(size=8, length=12):
    """Random questions, of four pieces with [CLS] and [SEP]."""
    rng, rows = random_rows((size, length), 8)
    places, starts = np.arange(length), rng.integers(4, 6, size)
    hidden = np.where((places == 0) | (places > 3), 1 - rows["input_mask"], 1)
    return {
        **rows,
        "segment_ids": (places > 3).astype(np.int32) * rows["input_mask"],
        "p_mask": hidden.astype(np.int32),
        "start_positions": starts.astype(np.int32),
        "end_positions": (starts + rng.integers(0, 2, size)).astype(np.int32),
        "is_impossible": rng.integers(0, 2, size).astype(np.int32),
        "span_weights": fills(size),
    }


def choice_batch(size=8, choices=4):
    """Random questions with options."""
    rng, rows = random_rows((size, choices, 12), 4)
    segments = rng.integers(0, 2, rows["input_ids"].shape) * rows["input_mask"]
    labels = rng.integers(0, choices, size).astype(np.int32)
    rows["segment_ids"] = segments.astype(np.int32)
    return {**rows, "label_ids": labels, "label_weights": fills(size)}


class Head(NamedTuple):
    """A head, and what is known of its batches."""

    model: type
    options: dict  # beside the encoder
    batch: dict
    weight: str  # the metric that is the sum of the weights
    floor: float = 1e-6  # what the largest entry of a gradient counts as at least

    def make(self, kind="bert", sizes=None, **options):
        """The model, on a tiny encoder without dropout."""
        encoder = tiny_model(kind, **(sizes or {})).encoder
        return self.model(encoder, **{**self.options, **options})

    def without_dropout(self, kind="bert", **sizes):
        """The same without dropout of the head."""
        return self.make(kind, sizes, **({"dropout": 0.0} if self.has_dropout else {}))

    @property
    def has_dropout(self):
        """Whether the head has some of its own."""
        return self.model is not SpanModel


# A softmax over positions, or options, is the same whatever is added to all of them, so that some
# biases have a gradient of rounding alone.
ROUNDING = 1e-3
HEADS = {
    "classes": Head(SequenceClassifier, {"classes": 3}, labelled_batch(3), "label_weight"),
    "scores": Head(SequenceClassifier, {"classes": 1}, labelled_batch(1), "label_weight"),
    "tags": Head(TokenClassifier, {"classes": TAGS}, tagged_batch(), "label_weight"),
    "spans": Head(SpanModel, {}, asked_batch(), "span_weight", ROUNDING),
    "beams": Head(BeamSpanModel, {}, asked_batch(), "span_weight", ROUNDING),
    "options": Head(MultipleChoiceModel, {}, choice_batch(), "label_weight", ROUNDING),
}
