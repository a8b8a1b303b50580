"""Assembles pairs of segments into sequences with [CLS] and [SEP].

Shapes: B sequences, T positions, N tokens of the text.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:  # otherwise every process that draws masks would load the tokenizers
    from create_pretraining_data.instances.pairs import PairRules
    from create_pretraining_data.instances.text import TokenizedText


class Sequences(NamedTuple):
    """Holds sequences before masking, padded with 0 and False."""

    ids: np.ndarray  # int32 [B, T] with [CLS] and [SEP]
    word_starts: np.ndarray  # bool [B, T] True where a word begins, but not at [CLS] and [SEP]
    lengths: np.ndarray  # int64 [B] in tokens, including [CLS] and [SEP]
    borders: np.ndarray  # int64 [B] where the second segment begins; the length if it is empty
    labels: np.ndarray  # int64 [B] the sentence label; 0 without a sentence objective


def lengths_and_borders(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lengths [B] and borders [B] of the sequences that `assemble` creates."""
    first_start, first_end, second_start, second_end, _ = pairs.T  # [B] each
    second = second_end - second_start
    borders = first_end - first_start + 2
    return borders + np.where(second > 0, second + 1, 0), borders


def assemble(text: "TokenizedText", pairs: np.ndarray, rules: "PairRules") -> Sequences:
    """Assembles [CLS] A [SEP] B [SEP], or [CLS] A [SEP] if the second segment is empty.

    Each row of `pairs`, int64 [B, 5], is a `Pair`; T is the max_seq_length of the rules.
    """
    first_start, first_end, second_start, second_end, labels = pairs.T  # [B] each
    first, second = first_end - first_start, second_end - second_start
    lengths, borders = lengths_and_borders(pairs)
    position = np.arange(rules.max_seq_length)
    in_first = (position >= 1) & (position <= first[:, None])  # [B, T]
    in_second = (position >= borders[:, None]) & (position < (borders + second)[:, None])
    offsets = (first_start - 1)[:, None], (second_start - borders)[:, None]  # [B, 1] each
    inside = in_first | in_second
    source = np.where(inside, np.where(in_first, *offsets) + position, 0)  # [B, T]
    ids = np.where(inside, text.ids[source], 0).astype(np.int32)
    word_starts = text.word_starts[source] & inside
    rows = np.arange(len(pairs))
    # The remainder of a truncated word counts as a word.
    word_starts[rows, 1] = True
    has_second = second > 0
    word_starts[rows[has_second], borders[has_second]] = True
    ids[:, 0] = rules.cls_id
    ids[rows, borders - 1] = rules.sep_id
    ids[rows, lengths - 1] = rules.sep_id
    return Sequences(ids, word_starts, lengths, borders, labels)
