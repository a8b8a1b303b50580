"""Compares texts by the cosines of their vectors.

Shapes: A, Q, N texts or vectors, H hidden, K texts found for a query.
"""

import os
import tokenize
import zipfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from bert_common.errors import InputError
from finetuning.metrics import imported
from finetuning.similarity.lexical import Bm25
from finetuning.similarity.ranking import Found, search, unit_vectors
from korean_bert.arguments import as_pairs, check_count, check_list, is_whole, shown
from korean_bert.results import Hit

# Texts, or vectors [N, H]: an array, a memory map or the path of a .npy file. A string is a text
# where a single text is allowed.
Searchable: TypeAlias = "str | os.PathLike[str] | np.ndarray | Iterable[str]"
Embed: TypeAlias = Callable[[list[str]], np.ndarray]
Words: TypeAlias = Callable[[str], Sequence[Any]]

# How `korean_bert.Model.search` ranks texts.
METHODS = ("vectors", "bm25", "hybrid")

# The ending of a vector file's name.
ARRAY = ".npy"

# The number of k-means starts; the best result is used, as a single start may end far from it.
STARTS = 10

# What NumPy raises for a missing or damaged file, whose header it reads as Python code.
DAMAGE = (
    OSError, ValueError, EOFError, TypeError, SyntaxError, tokenize.TokenError, zipfile.BadZipFile,
)  # fmt: skip


def cosines(
    embed: Embed, first: Searchable, second: Searchable, sizes: Sequence[int] = ()
) -> np.ndarray | float:
    """Returns the cosines of texts, float32 [A, N]; a single text has no axis, two give a number.

    Each side is a text, several texts, or vectors, which may be cut to `sizes`.

    Raises:
        InputError: a vector contains NaN or infinity.
    """
    pair = (first, second)
    sides = [_vectors(embed, [side] if isinstance(side, str) else side) for side in pair]
    single = [isinstance(side, str) or sides[i].ndim == 1 for i, side in enumerate(pair)]
    given = tuple(not isinstance(side, str) and _is_array(side) for side in pair)
    one, other = map(unit_vectors, _of_one_size(map(np.atleast_2d, sides), given, sizes))
    found = one @ other.T  # [A, N]
    found = found.squeeze(axis=tuple(np.flatnonzero(single)))
    return found if found.ndim else float(found)


def nearest_texts(
    embed: Embed, queries: Searchable, corpus: Searchable, top: int, sizes: Sequence[int] = ()
) -> list[list[Hit]]:
    """Returns the `Hit`s of each query by vectors; see `korean_bert.Model.search`.

    `sizes` are the sizes that vectors may be cut to.
    """
    texts = None if _is_array(corpus) else check_texts(corpus)
    sides = (
        np.asarray(_vectors(embed, queries)),
        _vectors(embed, corpus if texts is None else texts),
    )
    asked, vectors = _of_one_size(sides, (_is_array(queries), texts is None), sizes)
    return _hits(search(unit_vectors(asked), vectors, top, normalize=True), texts)


def texts_by_words(
    embed: Embed | None, words: Words, queries: Searchable, corpus: Searchable, top: int
) -> list[list[Hit]]:
    """Returns the `Hit`s of each query by BM25, and by vectors too if there is an `embed`."""
    for name, value in (("queries", queries), ("corpus", corpus)):
        if _is_array(value):
            raise InputError(
                f'{name} must be texts for every method but "vectors". Received: vectors'
            )
    asked, texts = check_texts(queries), check_texts(corpus)
    if not texts:
        return [[] for _ in asked]
    bm25 = Bm25(texts, words)
    if embed is None:
        return _hits(bm25.search(asked, top), texts)
    of_queries, of_texts = unit_vectors(embed(asked)), unit_vectors(embed(texts))
    return _hits(bm25.search_with_vectors(asked, of_queries, of_texts, top), texts)


def _hits(found: Found, texts: list[str] | None) -> list[list[Hit]]:
    return [
        [
            Hit(place, score, None if texts is None else texts[place])
            for place, score in zip(*row, strict=True)
        ]
        for row in zip(found.places.tolist(), found.scores.tolist(), strict=True)
    ]


def groups(embed: Embed, texts: Searchable, k: int, seed: int) -> np.ndarray:
    """Returns the number of each text's group, int32 [N]; see `korean_bert.Model.cluster`."""
    check_count(k, "k")
    if not is_whole(seed) or not 0 <= seed < 2**32:  # scikit-learn's range
        raise InputError(
            f"seed must be a whole number from 0 to {2**32 - 1}. Received: {shown(seed)}"
        )
    sklearn = imported("sklearn.cluster", "cluster")
    vectors = unit_vectors(np.atleast_2d(np.asarray(_vectors(embed, texts))))
    if k > len(vectors):
        raise InputError(f"k must be at most the number of texts, {len(vectors)}. Received: {k}")
    means = sklearn.KMeans(k, n_init=STARTS, random_state=int(seed))
    return means.fit_predict(vectors)  # [N]


def check_texts(values: object) -> list[str]:
    """Returns texts as a list; raises an `InputError` for a single text or pairs."""
    pairs, _ = as_pairs(check_list(values, "texts"))
    texts = [text for text, second in pairs if second is None]
    if len(texts) != len(pairs):
        raise InputError(f"texts to compare must be strings, no pairs. Received: {shown(values)}")
    return texts


def _is_array(value):
    is_path = isinstance(value, os.PathLike) or (isinstance(value, str) and value.endswith(ARRAY))
    return is_path or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _vectors(embed, value):
    """Returns the vectors of texts, or the given vectors, [N, H] or [H]."""
    if not _is_array(value):
        return embed(check_texts(value))
    if not isinstance(value, np.ndarray):
        value = _open_array(os.fspath(value))
    if value.ndim not in (1, 2) or value.dtype.kind != "f":
        raise InputError(
            "vectors must be numbers with a decimal point, [texts, size]. Received: "
            f"{value.dtype} {list(value.shape)}"
        )
    return value


def _open_array(path):
    try:
        array = np.load(os.path.expanduser(path), mmap_mode="r")
    except DAMAGE as error:
        raise InputError(f"{path} must be an array of NumPy. Received: {error}") from None
    if not isinstance(array, np.ndarray):
        names = ", ".join(array.files)
        raise InputError(f"{path} must be an array of NumPy. Received: an archive of {names}")
    return array


def _of_one_size(sides, given, sizes):
    """Returns two sides to compare, [texts, size], with vectors of texts cut like given vectors.

    `given` says for each side whether it was given as vectors.
    """
    one, other = sides
    if given == (False, True) and other.shape[-1] in sizes:
        one = one[..., : other.shape[-1]]
    if given == (True, False) and one.shape[-1] in sizes:
        other = other[..., : one.shape[-1]]
    if one.shape[-1] != other.shape[-1] or one.ndim != 2 or other.ndim != 2:
        raise InputError(
            "vectors that are compared must have one size, [texts, size]. Received: "
            f"{list(one.shape)} and {list(other.shape)}"
        )
    return one, other
