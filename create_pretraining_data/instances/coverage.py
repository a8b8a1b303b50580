"""Counts the tokens of a text that are in no row, by reason."""

import collections

import numpy as np

from create_pretraining_data.instances.pairs import PairRules, is_too_short_for_a_pair
from create_pretraining_data.instances.text import TokenizedText

# Reasons why a document is left out.
NO_TEXT = "no text"
NO_PIECE = "no piece in it"
ONE_WORD = "one word"
REPEATED = "repeated text"

# Reasons why tokens are in no row.
LONG_LINES = "lines longer than a row"
ROW_ENDS = "the ends of full rows"
ONE_WORD_DOCUMENTS = "documents of one word"


class Coverage:
    """Tracks which tokens of a text are in a row."""

    def __init__(self, text: TokenizedText, rules: PairRules) -> None:
        self._text, self._rules = text, rules
        # [N + 1] how many ranges begin at a piece minus how many end there
        self._changes = np.zeros(len(text.ids) + 1, np.int64)

    def add(self, pairs: np.ndarray) -> None:
        """Adds the rows of one pass, int64 [B, 5]; each row is a `Pair`."""
        length = len(self._changes)
        # Random next sentences may come from an appended text.
        places = np.minimum(pairs[:, :4], length - 1)
        for column, change in enumerate((1, -1, 1, -1)):
            self._changes += change * np.bincount(places[:, column], minlength=length)

    def count_missing(self) -> collections.Counter[str]:
        """Counts the tokens that are in no row, by reason."""
        text = self._text
        is_missing = np.cumsum(self._changes[:-1]) == 0  # [N]
        lengths = np.diff(text.sentences)
        reasons = np.repeat(np.where(lengths > self._rules.room, LONG_LINES, ROW_ENDS), lengths)
        if self._rules.objective != "none":
            for index in range(text.num_documents):
                if is_too_short_for_a_pair(text, index):
                    bounds = text.sentence_bounds(index)
                    reasons[bounds[0] : bounds[-1]] = ONE_WORD_DOCUMENTS
        names, counts = np.unique(reasons[is_missing], return_counts=True)
        return collections.Counter(dict(zip(names.tolist(), counts.tolist(), strict=True)))
