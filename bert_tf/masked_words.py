"""A pre-trained model's best guesses for masked words."""

import numpy as np
import tensorflow as tf


def best_guesses(model, ids, positions, count):
    """What the model would put at some positions of one sequence.

    Args:
        model: a `PretrainingModel`.
        ids: the sequence, special tokens included.
        positions: the masked ones.
        count: how many guesses for each.

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
    probabilities = tf.nn.softmax(tf.cast(outputs["masked_lm_logits"][0], tf.float32))  # [P, V]
    values, indices = tf.math.top_k(probabilities, k=count)
    return [
        list(zip(row_ids.tolist(), row.tolist(), strict=True))
        for row_ids, row in zip(indices.numpy(), values.numpy(), strict=True)
    ]
