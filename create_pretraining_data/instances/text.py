"""Tokenizes documents into flat arrays.

Legend: N pieces of all documents.
"""

import itertools
from typing import NamedTuple

import numpy as np


class Text(NamedTuple):
    """Tokenized documents, one after the other. From here on a piece is its id."""

    ids: np.ndarray  # int32 [N]
    word_starts: np.ndarray  # bool [N] where a word begins
    sentences: list[int]  # where each sentence begins in ids, at last N
    documents: list[int]  # where each document begins in sentences, at last the number of those

    @property
    def number(self):
        """How many documents there are."""
        return len(self.documents) - 1

    def sentence_bounds(self, index):
        """Where each sentence of a document begins in `ids`, at last where the last one ends."""
        return self.sentences[self.documents[index] : self.documents[index + 1] + 1]

    def words_of(self, start, end):
        """Where the words of a range of pieces begin in `ids`."""
        return start + np.flatnonzero(self.word_starts[start:end])


def join(first, second):
    """Two texts as one: the documents of the first, then those of the second."""
    sentences = len(first.sentences) - 1
    return Text(
        np.concatenate([first.ids, second.ids]),
        np.concatenate([first.word_starts, second.word_starts]),
        first.sentences + [len(first.ids) + start for start in second.sentences[1:]],
        first.documents + [sentences + start for start in second.documents[1:]],
    )


def tokenize_documents(documents, tokenizer):
    """Tokenizes documents; the words are the tokenizer's own.

    A sentence without a piece (of control characters alone) is left out, and so is a document
    that has no other.

    Args:
        documents: an iterable of documents, each an iterable of sentences as strings.
        tokenizer: anything with `tokenize_words` and `convert_tokens_to_ids`.

    Returns:
        A `Text`.
    """
    ids, lengths, sentences, bounds = [], [], [0], [0]
    for document in documents:
        for sentence in document:
            words = [word for word in tokenizer.tokenize_words(sentence) if word]
            if words:
                ids += tokenizer.convert_tokens_to_ids(itertools.chain.from_iterable(words))
                lengths += map(len, words)
                sentences.append(len(ids))
        if len(sentences) - 1 > bounds[-1]:
            bounds.append(len(sentences) - 1)
    word_starts, lengths = np.zeros(len(ids), bool), np.array(lengths, np.int64)
    word_starts[np.cumsum(lengths) - lengths] = True
    return Text(np.array(ids, np.int32), word_starts, sentences, bounds)
