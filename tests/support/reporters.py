"""Reporters that write invented metrics."""

import numpy as np
import tensorflow as tf

from bert_tf.pretraining import pretraining_objective
from bert_tf.summaries.reporter import Reporter

BATCH = 8


def make_reporter(directory, start_step=0, **changes):
    arguments = {"num_train_steps": 100, "batch_size": BATCH, "summary_steps": 4, **changes}
    return Reporter(directory, pretraining_objective("sentence_order"), start_step, **arguments)


def metrics(losses, skipped=None, **changes):
    """The tensors that a loop of updates returns, derived from their losses."""
    losses = np.array(losses, np.float32)  # [n]
    values = {
        "masked_lm_loss": losses * 10,
        "masked_lm_correct": np.full_like(losses, 3),
        "masked_lm_weight": np.full_like(losses, 12),
        "next_sentence_loss": losses * 4,
        "next_sentence_correct": np.full_like(losses, 6),
        "next_sentence_weight": np.full_like(losses, 8),
        "loss": losses,
        "gradient_norm": losses / 2,
        "learning_rate": losses / 1000,
        "tokens": np.full_like(losses, 96),
        "positions": np.full_like(losses, 8 * 16),
        "skipped": np.zeros_like(losses) if skipped is None else np.array(skipped, np.float32),
        "input_seconds": np.full_like(losses, 1e-4),
        **changes,
    }
    return {name: tf.constant(value) for name, value in values.items()}
