"""A pre-trained model's best guesses for masked words."""

import numpy as np
import tensorflow as tf


def best_guesses(model, ids, positions, candidates, count):
    """What the model would put at some positions of one sequence.

    Args:
        model: a `PretrainingModel`.
        ids: the sequence, special tokens included.
        positions: the masked ones.
        candidates: the ids that may be guessed; a table may have rows without a piece.
        count: how many guesses for each, at most.

    Returns:
        For every position a list of (id, probability), the most probable first.
    """
    outputs = model(
        {
            "input_ids": np.array([ids], np.int32),
            "masked_lm_positions": np.array([positions], np.int32),
        },
        training=False,
    )
    logits = tf.cast(outputs["masked_lm_logits"][0], tf.float32)  # [P, V]
    probabilities = tf.nn.softmax(tf.gather(logits, candidates, axis=1))  # [P, candidates]
    values, indices = tf.math.top_k(probabilities, k=min(count, len(candidates)))
    return [
        [(candidates[i], value) for i, value in zip(row_indices, row, strict=True)]
        for row_indices, row in zip(indices.numpy(), values.numpy().tolist(), strict=True)
    ]
