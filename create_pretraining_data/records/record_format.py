"""Declares the format of pre-training records."""

import dataclasses
import functools
from typing import Self

import numpy as np


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """Holds the rules for choosing and replacing tokens."""

    masked_lm_prob: float  # the share of tokens to predict; [CLS] and [SEP] are counted
    max_predictions_per_seq: (
        int  # the maximum number of predictions (twice that with do_permutation)
    )
    do_whole_word_mask: bool  # whether units are words rather than single tokens
    ngram: int  # the maximum number of consecutive units to choose together
    favor_shorter_ngram: bool  # whether lengths n have weights 1/n, or the reversed weights
    do_permutation: bool  # whether to choose the same number of tokens again and shuffle them
    mask_id: int  # the id of [MASK]
    vocab_size: int  # random tokens are drawn from 0 to vocab_size - 1
    # The shares of the chosen tokens replaced by [MASK] and by any token; the rest stays.
    mask_replace_prob: float = 0.8
    random_replace_prob: float = 0.1

    @property
    def max_predictions(self) -> int:
        """The maximum number of predictions in a sequence, including shuffled tokens."""
        return self.max_predictions_per_seq * (1 + self.do_permutation)

    @functools.cached_property
    def ngram_cdf(self) -> np.ndarray:
        """The cumulative probabilities of the n-gram lengths 1, 2, ..., ngram."""
        weights = 1.0 / np.arange(1, self.ngram + 1)
        weights = weights if self.favor_shorter_ngram else weights[::-1]
        return np.cumsum(weights) / weights.sum()


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """Declares the features of every record in a data set, named as in google-research/bert.

    An ordinary record is one sequence. A packed record is a row of several consecutive sequences,
    which must not attend to each other; additional features locate them. Records of both kinds may
    be stored without masks and masked whenever they are read.
    """

    max_seq_length: int  # the number of positions in a record
    max_predictions_per_seq: int  # the number of places for predictions in a record
    sentence_label: bool  # whether records have next_sentence_labels (not with --objective=none)
    token_boundary: bool  # whether records have token_boundary (as in google-research/albert)
    packed_sequences: int = 0  # the number of sequence slots in a packed record; 0 if not packed
    # The rules for masking records when they are read; None if records store their masks.
    masking: MaskingRules | None = None

    def with_masks(self) -> Self:
        """Returns the format of the records after masking."""
        return dataclasses.replace(self, masking=None)

    def features(self) -> dict[str, tuple[int, str]]:
        """Returns {name: (length, kind)}; kinds are "int" (int64) and "float" (float32)."""
        return self._static_features() if self.masking is None else self._dynamic_features()

    def _dynamic_features(self):
        slots = self.packed_sequences or 1
        table = {
            "input_ids": (self.max_seq_length, "int"),
            # 1 where a word begins, but not at [CLS] and [SEP].
            "word_starts": (self.max_seq_length, "int"),
            # For each slot, the lengths of [CLS] A [SEP] and B [SEP]; 0 if the slot is empty.
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
            # Counted from 0 in every sequence.
            table["position_ids"] = (sequence, "int")
            # The position of each sequence's [CLS]; 0 for an empty slot.
            table["sequence_starts"] = (self.packed_sequences, "int")
        if self.sentence_label:
            # ALBERT's records use the same name for the sentence order.
            table["next_sentence_labels"] = (self.packed_sequences or 1, "int")
        if self.sentence_label and self.packed_sequences:
            # 0 for an empty slot.
            table["next_sentence_weights"] = (self.packed_sequences, "float")
        if self.token_boundary:
            table["token_boundary"] = (sequence, "int")
        return table
