"""What benchmarks/vocabulary.py measures of a model: bits per character, accuracy, time.

Shapes: B batch, T pieces of a row, P predictions, N reviews.
"""

import math
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from vocabulary_text import masked_characters, row

from bert_common.progress import progress, with_progress
from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay, load_google_checkpoint
from bert_tf.dropout import Dropout
from bert_tf.layers import dense
from bert_tf.optimization import CLIP_NORM, OPTIMIZERS
from bert_tf.training.evaluation import EvaluationStep

FAST_QUANTILE = 0.1  # of windows of steps: while others use the machine as well, all are slower


class Bits(NamedTuple):
    """Bits per character of the masked spans."""

    at_once: float
    in_turn: float


def measure_bits(loss_of, examples, cuts, limit):
    """Bits per character in both ways of asking.

    Args:
        loss_of: from a list of rows, as `row` gives them, to the sum of their predictions'
            -ln p.
        examples: `Example`s.
        cuts: the vocabulary's `Cuts`.
        limit: its `Limits`.

    Returns:
        `Bits`.
    """
    most = [  # pieces of a masked span
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


def frequency_bits(counts, said, kinds):
    """What it costs to say things by how often they were said before, in bits.

    Args:
        counts: a Counter.
        said: what is to be said.
        kinds: how many different things there may be; each is counted once more, so that none
            is impossible.
    """
    total = counts.total() + kinds
    return sum(math.log2(total / (counts[each] + 1)) for each in said)


def checkpoint_loss(config, checkpoint, batch_size):
    """The `loss_of` of a pre-trained model, without dropout, by the project's evaluation step."""
    model = PretrainingModel(BertModel(config))
    load_google_checkpoint(model, str(checkpoint))
    step = EvaluationStep(model, tf.distribute.get_strategy(), xla="auto")

    def loss_of(rows):
        total = 0.0
        starts = range(0, len(rows), batch_size)
        for start in with_progress(starts, "held-out text", "batches"):
            part = rows[start : start + batch_size]
            missing = batch_size - len(part)  # of one shape all: filled up with weight 0
            filler = {**part[0], "masked_lm_weights": bytes(len(part[0]["masked_lm_weights"]))}
            batch = stack([*part, *[filler] * missing])
            total += float(step(batch)["masked_lm_loss"])
        return total

    return loss_of


def stack(rows):
    """Rows as a batch: a dict of [B, T] and [B, P]."""
    kinds = {name: np.int32 for name in rows[0]} | {"masked_lm_weights": np.float32}
    return {
        name: np.array([list(each[name]) for each in rows], kind) for name, kind in kinds.items()
    }


def pretraining_seconds(folder, batch_size):
    """Seconds of a step, from the curves that training wrote."""
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    points = events.Tensors("throughput/examples_per_second")
    seconds = [batch_size / float(tf.make_ndarray(point.tensor_proto)) for point in points]
    return float(np.quantile(seconds, FAST_QUANTILE))


class Reviews(NamedTuple):
    """Reviews as pieces."""

    ids: np.ndarray  # [N, T] int32
    mask: np.ndarray  # [N, T] int32
    labels: np.ndarray  # [N] int32


def review_arrays(reviews, cuts, length):
    """Pads reviews.

    Args:
        reviews: pairs of eojeols and label; cut so that they fit.
        cuts: the vocabulary's `Cuts`.
        length: pieces, [CLS] and [SEP] among them.
    """
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
    """Two classes from the pooled vector, as google-research/bert run_classifier.py."""

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
    """Trains a classifier, says how often it is right on other reviews.

    Args:
        config: a `BertConfig`.
        checkpoint: what the encoder starts from; None for new weights.
        train, test: `Reviews`.
        settings: review_batch, epochs, review_rate.
        seed: decides new weights, the order of reviews, dropout.

    Returns:
        The share of the test reviews that are told right.
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
        # Dense, that of the table that was gathered from too.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
        rate = optimizer.learning_rate
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            slots = optimizer.slot_variables(variable)
            values = tuple(slot.value for slot in slots)
            decayed = optimizer.is_decayed(variable)
            weight, values = optimizer.updated(variable.value, values, gradient, rate, decayed)
            variable.assign(weight)
            for slot, value in zip(slots, values, strict=True):
                slot.assign(value)
        optimizer.iterations.assign_add(1)

    @tf.function(jit_compile=True)
    def guess(ids, mask):
        return tf.argmax(model({"input_ids": ids, "input_mask": mask}, training=False), axis=1)

    rng = np.random.default_rng(seed)
    with progress("fine-tuning", steps, "steps") as bar:
        for _ in range(settings.epochs):
            order = rng.permutation(len(train.labels))
            for start in range(0, len(order) - size + 1, size):
                update(*(array[order[start : start + size]] for array in train))
                bar.update()
    right = 0
    for start in range(0, len(test.labels), size):
        # From the end of the file, so that the last batch is as large as the others.
        first = max(0, min(start, len(test.labels) - size))
        part = slice(first, first + size)
        found = guess(test.ids[part], test.mask[part]).numpy() == test.labels[part]
        right += int(found[start - first :].sum())
    return right / len(test.labels)
