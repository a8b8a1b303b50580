"""Makes the features of records from masked sequences.

Legend: B sequences, T positions.
"""

import numpy as np


def make_features(sequences, masked, record_format, pad_id=0):
    """Pads sequences to the features of records.

    Args:
        sequences: `Sequences`.
        masked: the same sequences as `Masked`.
        record_format: a `RecordFormat`.
        pad_id: what stands after the pieces.

    Returns:
        A dict from feature name to an array [B, values of the feature].
    """
    position = np.arange(record_format.max_seq_length)
    lengths, borders = sequences.lengths[:, None], sequences.borders[:, None]
    mask = position < lengths  # [B, T]
    predictions = np.arange(record_format.max_predictions_per_seq) < masked.counts[:, None]
    features = {
        "input_ids": np.where(mask, masked.ids, pad_id),
        "input_mask": mask,
        "segment_ids": mask & (position >= borders),
        "masked_lm_positions": masked.positions,
        "masked_lm_ids": masked.labels,
        "masked_lm_weights": predictions,
    }
    if record_format.sentence_label:
        features["next_sentence_labels"] = sequences.labels[:, None]
    if record_format.token_boundary:
        # Where a word begins, and at [CLS] and [SEP].
        special = (position == 0) | (position == borders - 1) | (position == lengths - 1)
        features["token_boundary"] = sequences.word_starts | special
    return features
