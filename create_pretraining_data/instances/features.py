"""Creates the features of records from masked sequences.

Legend: B sequences, T positions, P predictions.
"""

import numpy as np


def make_features(sequences, masked, record_format, pad_id=0):
    """Pads sequences and creates the features of records, one sequence in each.

    Args:
        sequences: `Sequences`.
        masked: the same sequences as `MaskedSequences`.
        record_format: a `RecordFormat`.
        pad_id: the id that pads the ids.

    Returns:
        A dict from feature name to an array [B, values of the feature].
    """
    position = np.arange(record_format.max_seq_length)
    lengths, borders = sequences.lengths[:, None], sequences.borders[:, None]  # [B, 1] each
    mask = position < lengths  # [B, T]
    place = np.arange(record_format.max_predictions_per_seq)
    predictions = place < masked.counts[:, None]  # [B, P]
    features = {
        "input_ids": np.where(mask, masked.ids, pad_id),
        "input_mask": mask,
        "segment_ids": mask & (position >= borders),
        "masked_lm_positions": masked.positions,
        "masked_lm_ids": masked.labels,
        "masked_lm_weights": predictions,
    }
    if record_format.sentence_label:
        features["next_sentence_labels"] = sequences.labels[:, None]  # [B, 1]
    if record_format.token_boundary:
        # At the beginning of words, and at [CLS] and [SEP].
        special = (position == 0) | (position == borders - 1) | (position == lengths - 1)
        features["token_boundary"] = sequences.word_starts | special
    return features
