"""Defines the rules for masking sequences, which are stored with records without masks."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """The rules for choosing and replacing pieces.

    Attributes:
        masked_lm_prob: the share of a sequence's pieces, including [CLS] and [SEP], to predict.
        max_predictions_per_seq: the maximum number of predictions (twice that with do_permutation).
        do_whole_word_mask: whether units are words rather than single pieces.
        ngram: the maximum number of consecutive units to choose at once.
        favor_shorter_ngram: whether lengths n are drawn with weights 1/n, or with these reversed.
        do_permutation: whether as many pieces again are chosen, which are shuffled.
        mask_id: the id of [MASK].
        vocab_size: random pieces are drawn from 0 to vocab_size - 1.
    """

    masked_lm_prob: float
    max_predictions_per_seq: int
    do_whole_word_mask: bool
    ngram: int
    favor_shorter_ngram: bool
    do_permutation: bool
    mask_id: int
    vocab_size: int

    @property
    def max_predictions(self):
        """The maximum number of predictions in a sequence, including those of do_permutation."""
        return self.max_predictions_per_seq * (1 + self.do_permutation)

    @functools.cached_property
    def ngram_cdf(self):
        """The cumulative probabilities of the lengths 1, 2, ..., ngram."""
        weights = 1.0 / np.arange(1, self.ngram + 1)
        weights = weights if self.favor_shorter_ngram else weights[::-1]
        return np.cumsum(weights) / weights.sum()
