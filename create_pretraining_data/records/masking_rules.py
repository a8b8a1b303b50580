"""The rules by which sequences are masked; records without masks carry them."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """How pieces are chosen and replaced.

    Attributes:
        masked_lm_prob: the share of a sequence's pieces, [CLS] and [SEP] counted, to predict.
        max_predictions_per_seq: the most predictions (twice that with do_permutation).
        do_whole_word_mask: units are words instead of single pieces.
        ngram: the most units in a row that are chosen at once.
        favor_shorter_ngram: lengths n are drawn with weights 1/n, else with the same reversed.
        do_permutation: as many pieces again are chosen, which trade places among themselves.
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
    def places(self):
        """How many predictions a sequence may have at most."""
        return self.max_predictions_per_seq * (1 + self.do_permutation)

    @functools.cached_property
    def ngram_shares(self):
        """The probability that a drawn length is at most 1, 2, ..., ngram."""
        weights = 1.0 / np.arange(1, self.ngram + 1)
        weights = weights if self.favor_shorter_ngram else weights[::-1]
        return np.cumsum(weights) / weights.sum()
