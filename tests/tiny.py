"""Tiny models with random batches, for tests of training."""

import numpy as np
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel, PretrainingModel
from bert_tf.optimization import OPTIMIZERS, WarmupPolynomialDecay

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


def tiny_model(kind="bert", dropout=0.0, **changes):
    """A pre-training model of two layers, `kind` "bert" or "albert"."""
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    sizes = {**SIZES, **rates, **changes}
    if kind == "albert":
        return PretrainingModel(AlbertModel(AlbertConfig(**{"embedding_size": 16, **sizes})))
    return PretrainingModel(BertModel(BertConfig(**sizes)))


def make_optimizer(name, model, steps=100):
    """The named optimizer, built for the model, with a warm-up of two steps."""
    optimizer = OPTIMIZERS[name](WarmupPolynomialDecay(1e-2, steps, 2))
    optimizer.build(model.trainable_variables)
    return optimizer


def random_batch(seed, size=8, length=16, predictions=4, vocab_size=60, padding=True):
    """Features of a global batch; the masked counts differ from row to row."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(length // 2, length + 1, size) if padding else np.full(size, length)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    counts = rng.integers(1, predictions + 1, size)
    return {
        "input_ids": (rng.integers(1, vocab_size, (size, length)) * mask).astype(np.int32),
        "input_mask": mask,
        "segment_ids": (rng.integers(0, 2, (size, length)) * mask).astype(np.int32),
        "masked_lm_positions": rng.integers(1, length // 2, (size, predictions)).astype(np.int32),
        "masked_lm_ids": rng.integers(1, vocab_size, (size, predictions)).astype(np.int32),
        "masked_lm_weights": (np.arange(predictions) < counts[:, None]).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (size, 1)).astype(np.int32),
        "next_sentence_weights": np.ones(size, np.float32),
    }


def split_batch(batch, strategy):
    """The global batch, dealt to the strategy's replicas as training deals it."""
    replicas = strategy.num_replicas_in_sync
    parts = [
        {k: tf.constant(np.array_split(v, replicas)[i]) for k, v in batch.items()}
        for i in range(replicas)
    ]
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )


def two_devices():
    """A strategy over two logical CPUs.

    It adds up on one device: collective operations of several strategies in one process
    would get into each other's way.
    """
    return tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )
