"""Tokenizes documents into flat arrays.

Shapes: N tokens of all documents.
"""

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from create_pretraining_data.instances.long_lines import split_line

if TYPE_CHECKING:  # importers that only build rows of ids need no tokenizer
    from tokenization.base import TokenizerInterface


class TokenizedText(NamedTuple):
    """Holds the ids of tokenized documents, one after another."""

    ids: np.ndarray  # int32 [N]
    word_starts: np.ndarray  # bool [N] True where a word begins
    sentences: list[int]  # where each sentence begins in ids, and finally N
    documents: list[int]  # where each document begins in sentences, and finally their number
    split_lines: int = 0  # the number of lines that were split because they exceed a row

    @property
    def num_documents(self) -> int:
        """The number of documents."""
        return len(self.documents) - 1

    def sentence_bounds(self, index: int) -> list[int]:
        """Returns where each sentence of a document begins in `ids`, and where the last ends."""
        return self.sentences[self.documents[index] : self.documents[index + 1] + 1]

    def words_of(self, start: int, end: int) -> np.ndarray:
        """Returns where words begin between the positions `start` and `end` of `ids`."""
        return start + np.flatnonzero(self.word_starts[start:end])


def concatenate(first: TokenizedText, second: TokenizedText) -> TokenizedText:
    """Concatenates two texts."""
    sentences = len(first.sentences) - 1
    return TokenizedText(
        np.concatenate([first.ids, second.ids]),
        np.concatenate([first.word_starts, second.word_starts]),
        first.sentences + [len(first.ids) + start for start in second.sentences[1:]],
        first.documents + [sentences + start for start in second.documents[1:]],
        first.split_lines + second.split_lines,
    )


def tokenize_documents(
    documents: Iterable[Iterable[str]], tokenizer: "TokenizerInterface", longest: int | None = None
) -> TokenizedText:
    """Tokenizes documents, each an iterable of sentences as strings.

    Sentences without tokens (only control characters) are left out, and so are documents that
    consist of such sentences. The tokenizer's `tokenize_words` determines the words. Sentences of
    more than `longest` tokens are split.
    """
    ids: list[int] = []
    lengths: list[int] = []
    sentences, bounds, split_lines = [0], [0], 0
    for document in documents:
        for sentence in document:
            words = [word for word in tokenizer.tokenize_words(sentence) if word]
            parts = [words] if words else []
            if longest is not None and sum(map(len, words)) > longest:
                # Parts of half a row, so that two of them (A and B) fill it.
                parts = split_line(sentence, words, tokenizer, longest, -(-longest // 2))
                split_lines += 1
            for part in parts:
                ids += tokenizer.convert_tokens_to_ids(itertools.chain.from_iterable(part))
                lengths += map(len, part)
                sentences.append(len(ids))
        if len(sentences) - 1 > bounds[-1]:
            bounds.append(len(sentences) - 1)
    word_starts, sizes = np.zeros(len(ids), bool), np.array(lengths, np.int64)
    word_starts[np.cumsum(sizes) - sizes] = True
    return TokenizedText(np.array(ids, np.int32), word_starts, sentences, bounds, split_lines)
