"""Measures a model with some vocabulary: bits per character, accuracy, time per step.

Shapes: B batch, T pieces of a row, P predictions, N reviews.
"""

import math
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from bert_common.progress import progress, with_progress
from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay, load_google_checkpoint
from bert_tf.dropout import Dropout
from bert_tf.layers import dense
from bert_tf.optimization import CLIP_NORM, OPTIMIZERS
from bert_tf.training.evaluation import EvaluationStep
from bert_tf.training.xla import choose_compilation
from vocabulary_models.text import masked_characters, row


class Bits(NamedTuple):
    """Bits per character of the masked spans."""

    at_once: float
    in_turn: float


def measure_bits(loss_of, examples, cuts, limit):
    """Computes the `Bits` of examples, all pieces at once and one after another.

    `loss_of` takes a list of `text.row`s and returns the sum of -ln p over their predictions.
    """
    most = [  # pieces in a masked span
        max((len(cuts.pieces(example.eojeols, span)) for span in example.masked), default=0)
        for example in examples
    ]
    at_once = loss_of([row(example, cuts, limit) for example in examples])
    in_turn = loss_of(
        [
            row(example, cuts, limit, asked=k)
            for k in range(max(most))
            for example, pieces in zip(examples, most, strict=True)
            if pieces > k
        ]
    )
    return Bits(*(loss / math.log(2) / masked_characters(examples) for loss in (at_once, in_turn)))


def frequency_bits(counts, symbols, kinds):
    """The bits that symbols cost by their frequencies in the Counter `counts`.

    Each count of the `kinds` of symbols is raised by one, so that none is impossible.
    """
    total = counts.total() + kinds
    return sum(math.log2(total / (counts[symbol] + 1)) for symbol in symbols)


def checkpoint_loss(config, checkpoint, batch_size):
    """The `loss_of` of a pre-trained model, computed by the project's evaluation step."""
    model = PretrainingModel(BertModel(config))
    load_google_checkpoint(model, str(checkpoint))
    step = EvaluationStep(
        model, tf.distribute.get_strategy(), choose_compilation("auto", "float32")
    )

    def loss_of(rows):
        total = 0.0
        starts = range(0, len(rows), batch_size)
        for start in with_progress(starts, "held-out text", "batches"):
            part = rows[start : start + batch_size]
            missing = batch_size - len(part)  # batches have one shape: filled up with weight 0
            filler = {**part[0], "masked_lm_weights": bytes(len(part[0]["masked_lm_weights"]))}
            batch = stack([*part, *[filler] * missing])
            total += float(step(batch)["masked_lm_loss"])
        return total

    return loss_of


def stack(rows):
    """Stacks rows into a batch: a dict of [B, T] and [B, P]."""
    kinds = {name: np.int32 for name in rows[0]} | {"masked_lm_weights": np.float32}
    return {
        name: np.array([list(features[name]) for features in rows], kind)
        for name, kind in kinds.items()
    }


class Reviews(NamedTuple):
    """Reviews as pieces."""

    ids: np.ndarray  # [N, T] int32
    mask: np.ndarray  # [N, T] int32
    labels: np.ndarray  # [N] int32


def review_arrays(reviews, cuts, length):
    """Pads reviews, pairs of eojeols and label, to `length` pieces with [CLS] and [SEP]."""
    tokenizer = cuts.tokenizer
    ids = np.full((len(reviews), length), tokenizer.pad_id, np.int32)
    mask = np.zeros((len(reviews), length), np.int32)
    for number, (eojeols, _) in enumerate(reviews):
        pieces = [piece for eojeol in eojeols for piece in cuts[eojeol]]
        pieces = [tokenizer.cls_id, *pieces, tokenizer.sep_id]
        ids[number, : len(pieces)] = pieces
        mask[number, : len(pieces)] = 1
    return Reviews(ids, mask, np.array([label for _, label in reviews], np.int32))


class Classifier(keras.Model):
    """A classifier of two classes, as google-research/bert run_classifier.py."""

    def __init__(self, config):
        super().__init__()
        self.encoder = BertModel(config)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.head = dense(2, config, "head")
        self.head.build((None, config.hidden_size))
        self.built = True

    def call(self, inputs, training=None):
        """[B, T] integers -> [B, 2]."""
        pooled = self.encoder(inputs, training=training)["pooled_output"]  # [B, H]
        return self.head(self.dropout(pooled, training=training))


def finetune(config, checkpoint, train, test, settings, seed):
    """Trains a classifier, and returns its accuracy on other reviews.

    Args:
        config: a `BertConfig`.
        checkpoint: the encoder's initial weights; None for new ones.
        train, test: `Reviews`.
        settings: review_batch, epochs, review_rate.
        seed: of new weights, the order of reviews, and dropout.

    Returns:
        The share of the test reviews that are classified correctly.
    """
    keras.utils.set_random_seed(seed)
    model = Classifier(config)
    if checkpoint:
        load_google_checkpoint(model.encoder, str(checkpoint))
    size = settings.review_batch
    steps = settings.epochs * (len(train.labels) // size)
    schedule = WarmupPolynomialDecay(settings.review_rate, steps, steps // 10)
    optimizer = OPTIMIZERS["adamw"](schedule)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=True)
    def update(ids, mask, labels):
        with tf.GradientTape() as tape:
            logits = model({"input_ids": ids, "input_mask": mask}, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)  # [B]
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        # Dense, including that of the embedding table.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
        rate = tf.convert_to_tensor(optimizer.learning_rate)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            optimizer.update_step(gradient, variable, rate)
        optimizer.iterations.assign_add(1)

    @tf.function(jit_compile=True)
    def predict(ids, mask):
        return tf.argmax(model({"input_ids": ids, "input_mask": mask}, training=False), axis=1)

    rng = np.random.default_rng(seed)
    with progress("fine-tuning", steps, "steps") as bar:
        for _ in range(settings.epochs):
            order = rng.permutation(len(train.labels))
            for start in range(0, len(order) - size + 1, size):
                update(*(array[order[start : start + size]] for array in train))
                bar.update()
    correct = 0
    for start in range(0, len(test.labels), size):
        # The last batch overlaps the one before it, as all have the same size.
        first = max(0, min(start, len(test.labels) - size))
        part = slice(first, first + size)
        is_correct = predict(test.ids[part], test.mask[part]).numpy() == test.labels[part]
        correct += int(is_correct[start - first :].sum())
    return correct / len(test.labels)
