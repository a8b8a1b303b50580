"""Declares the format of pre-training records."""

import dataclasses
import functools
from typing import Self

import numpy as np


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """The rules for choosing and replacing pieces."""

    masked_lm_prob: float  # the share of a sequence's pieces, with [CLS] and [SEP], to predict
    max_predictions_per_seq: (
        int  # the maximum number of predictions (twice that with do_permutation)
    )
    do_whole_word_mask: bool  # whether units are words rather than single pieces
    ngram: int  # the maximum number of consecutive units to choose at once
    favor_shorter_ngram: bool  # whether lengths n have weights 1/n, or these reversed
    do_permutation: bool  # whether as many pieces again are chosen, which are shuffled
    mask_id: int  # the id of [MASK]
    vocab_size: int  # random pieces are drawn from 0 to vocab_size - 1
    # The shares of the chosen pieces in whose place [MASK] stands, and any piece; the rest stays.
    mask_replace_prob: float = 0.8
    random_replace_prob: float = 0.1

    @property
    def max_predictions(self) -> int:
        """The maximum number of predictions in a sequence, with do_permutation's."""
        return self.max_predictions_per_seq * (1 + self.do_permutation)

    @functools.cached_property
    def ngram_cdf(self) -> np.ndarray:
        """The cumulative probabilities of the lengths 1, 2, ..., ngram."""
        weights = 1.0 / np.arange(1, self.ngram + 1)
        weights = weights if self.favor_shorter_ngram else weights[::-1]
        return np.cumsum(weights) / weights.sum()


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """The features of every record in a data set, with the names of google-research/bert.

    An ordinary record is one sequence. A packed record is a row of several sequences, one after
    another, which must not attend to each other; additional features locate them. Either may be
    stored without masks, to be masked whenever it is read.
    """

    max_seq_length: int  # the number of positions in a record
    max_predictions_per_seq: int  # the number of places for predictions in a record
    sentence_label: bool  # whether records have next_sentence_labels (not with --objective=none)
    token_boundary: bool  # whether records have token_boundary (as in google-research/albert)
    packed_sequences: int = 0  # the slots for sequences in a packed record; 0 for ordinary ones
    # The rules for masking records when they are read; None if records hold their masks.
    masking: MaskingRules | None = None

    def with_masks(self) -> Self:
        """The format of the records after masking."""
        return dataclasses.replace(self, masking=None)

    def features(self) -> dict[str, tuple[int, str]]:
        """The features: {name: (length, kind)}, the kind "int" (int64) or "float" (float32)."""
        return self._static_features() if self.masking is None else self._dynamic_features()

    def _dynamic_features(self):
        slots = self.packed_sequences or 1
        table = {
            "input_ids": (self.max_seq_length, "int"),
            # 1 where a word begins; not at [CLS], not at [SEP].
            "word_starts": (self.max_seq_length, "int"),
            # For each slot, the lengths of [CLS] A [SEP] and of B [SEP]; 0 if it is empty.
            "segment_lengths": (2 * slots, "int"),
        }
        if self.sentence_label:
            table["next_sentence_labels"] = (slots, "int")
        return table

    def _static_features(self):
        sequence, predictions = self.max_seq_length, self.max_predictions_per_seq
        table = {
            "input_ids": (sequence, "int"),
            "input_mask": (sequence, "int"),
            "segment_ids": (sequence, "int"),
            "masked_lm_positions": (predictions, "int"),
            "masked_lm_ids": (predictions, "int"),
            "masked_lm_weights": (predictions, "float"),
        }
        if self.packed_sequences:
            # 1 in the first sequence of the row, 2 in the second, ...; 0 in padding.
            table["segment_index"] = (sequence, "int")
            # From 0 on in every sequence.
            table["position_ids"] = (sequence, "int")
            # The position of each sequence's [CLS]; 0 for an empty slot.
            table["sequence_starts"] = (self.packed_sequences, "int")
        if self.sentence_label:
            # ALBERT's records use this name too, for the sentence order.
            table["next_sentence_labels"] = (self.packed_sequences or 1, "int")
        if self.sentence_label and self.packed_sequences:
            # 0 for an empty slot.
            table["next_sentence_weights"] = (self.packed_sequences, "float")
        if self.token_boundary:
            table["token_boundary"] = (sequence, "int")
        return table
