"""Ranks texts by the words or characters that they share, alone or together with their vectors.

Shapes: Q queries, N texts of a corpus, H hidden, V words.
"""

import array
import collections
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from finetuning.metrics import imported
from finetuning.similarity.ranking import BLOCK_VALUES, Found, best_of
from tokenization.base import TokenizerInterface

# The defaults of rank_bm25; Lucene's k1 is 1.2.
BM25_K1, BM25_B = 1.5, 0.75

# The weight of a standard deviation of the cosines relative to one of BM25. Of 0.2, 0.4, 0.5, 0.6,
# 0.7, 0.8, 1 and 1.3 it has the highest nDCG at 10 with `reference_vectors` on articles 0:100 of
# KorQuAD's dev file.
COSINE_WEIGHT = 0.7

# A smaller standard deviation is a rounding error: all texts are equally good.
SMALLEST = 1e-6


class TfIdf:
    """Computes TF-IDF vectors of n-grams of 1 to 3 characters with scikit-learn, sparse [N, V].

    Args:
        texts: the texts from which n-grams and their weights are learned.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        features = imported("sklearn.feature_extraction.text")
        self.vectorizer = features.TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
        self.vectorizer.fit(texts)

    def __call__(self, texts: Sequence[str]) -> Any:
        return self.vectorizer.transform(texts)


def search_tf_idf(queries: Sequence[str], corpus: Sequence[str], top: int) -> Found:
    """Searches by the cosines of `TfIdf` vectors, learned from the corpus, as `ranking.search`."""
    weigh = TfIdf(corpus)
    across = weigh(corpus).T.tocsr()  # [V, N]

    def scores(part: slice) -> np.ndarray:
        return (weigh(queries[part]) @ across).toarray().astype(np.float32)

    return _search(len(queries), len(corpus), top, scores)


def known_tokens(tokenizer: TokenizerInterface) -> Callable[[str], list[int]]:
    """Returns a function that tokenizes a text and drops [UNK], which would match other words."""
    return lambda text: [number for number in tokenizer.encode(text) if number != tokenizer.unk_id]


class Bm25:
    """Scores texts by Okapi BM25; a word in n texts weighs log(1 + (N - n + 0.5) / (n + 0.5)).

    This is Lucene's weight, which is never negative.

    Args:
        corpus: N texts.
        words: splits a text into words, as a tokenizer does.
    """

    def __init__(self, corpus: Sequence[str], words: Callable[[str], Sequence[Any]]) -> None:
        self._sparse, self._words = imported("scipy.sparse", "BM25"), words
        numbers: dict[Any, int] = {}
        # A dict per text would take several times the memory.
        found, repeats, sizes = array.array("i"), array.array("i"), array.array("i")
        for text in corpus:
            counter = collections.Counter(words(text))
            found.extend(numbers.setdefault(word, len(numbers)) for word in counter)
            repeats.extend(counter.values())
            sizes.append(len(counter))
        columns, values = np.asarray(found), np.asarray(repeats)
        rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        lengths = np.bincount(rows, values, len(sizes))  # [N]
        norms = BM25_K1 * (1 - BM25_B + BM25_B * lengths / max(lengths.mean(), 1e-9))  # [N]
        in_texts = np.bincount(columns, minlength=len(numbers))  # [V]
        idf = np.log1p((len(sizes) - in_texts + 0.5) / (in_texts + 0.5))  # [V]
        weights = idf[columns] * values * (BM25_K1 + 1) / (values + norms[rows])
        self._numbers, self._size = numbers, len(sizes)
        shape = len(numbers), len(sizes)
        self._across = self._sparse.csr_matrix((weights, (columns, rows)), shape)

    def __call__(self, queries: Sequence[str]) -> np.ndarray:
        """Returns the scores of all texts for each query, float32 [Q, N]."""
        numbers = self._numbers
        asked = [[numbers[w] for w in self._words(text) if w in numbers] for text in queries]
        rows = np.repeat(np.arange(len(asked)), [len(each) for each in asked])
        columns = np.array([number for each in asked for number in each], np.int64)
        # A word that occurs twice in a query counts twice, as BM25 sums over the query's words.
        entries, shape = (np.ones(len(columns)), (rows, columns)), (len(asked), len(numbers))
        matrix = self._sparse.csr_matrix(entries, shape)
        return (matrix @ self._across).toarray().astype(np.float32)

    def search(self, queries: Sequence[str], top: int) -> Found:
        """Searches by the scores, as `ranking.search`."""
        return _search(len(queries), self._size, top, lambda part: self(queries[part]))

    def search_with_vectors(
        self, queries: Sequence[str], asked: np.ndarray, vectors: np.ndarray, top: int
    ) -> Found:
        """Searches by the sum of BM25 and `COSINE_WEIGHT` x cosine, both as standard scores.

        A standard score is a score's difference from all texts' mean, in standard deviations.

        Args:
            queries: Q texts.
            asked: the queries' vectors of length 1, [Q, H].
            vectors: the corpus's vectors of length 1, [N, H].
        """

        def scores(part: slice) -> np.ndarray:
            cosines = asked[part] @ vectors.T
            return _standard(self(queries[part])) + COSINE_WEIGHT * _standard(cosines)

        return _search(len(queries), len(vectors), top, scores)


def _standard(scores: np.ndarray) -> np.ndarray:
    """Returns the standard scores of each row, [Q, N] -> [Q, N]; 0 if all scores are equal."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    return centred / np.where(deviation > SMALLEST, deviation, np.inf)


def _search(count: int, size: int, top: int, scores: Callable[[slice], np.ndarray]) -> Found:
    """Searches by the scores [Q, N], computing a few of the `count` queries at a time."""
    step = max(1, BLOCK_VALUES // max(1, size))
    parts = [
        best_of(scores(slice(first, first + step)), top) for first in range(0, count, step)
    ] or [best_of(np.zeros((0, size), np.float32), top)]
    return Found(*map(np.concatenate, zip(*parts, strict=True)))
