"""Searches many millions of vectors approximately, with an index of FAISS.

Hierarchical navigable small worlds (arXiv:1603.09320), by the package faiss-cpu.

Shapes: Q queries, N texts of a corpus, H hidden, K texts found per query.
"""

import importlib
from typing import Any

import numpy as np

from bert_common.errors import InputError
from finetuning.similarity.ranking import Found, unit_vectors

# How many neighbours a vector is linked to, FAISS's advice for vectors of hundreds of numbers, and
# how many candidates a search keeps, four times FAISS's default.
LINKS, CANDIDATES = 32, 64


def imported_faiss() -> Any:
    """Imports FAISS; raises an `InputError` if it is not installed."""
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise InputError(
            f"an approximate index needs FAISS (pip install -e '.[search]'). Received: {error}"
        ) from None


def make_index(vectors: np.ndarray) -> Any:
    """Makes an index of vectors [N, H] by their cosines; it holds all the vectors."""
    units, faiss = unit_vectors(vectors), imported_faiss()
    index = faiss.IndexHNSWFlat(units.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.add(units)
    return index


def search_index(index: Any, queries: np.ndarray, top: int) -> Found:
    """Finds approximately the highest cosines with queries [Q, H]; K is at most N."""
    units = unit_vectors(queries)
    index.hnsw.efSearch = max(CANDIDATES, top)
    scores, places = index.search(units, min(top, index.ntotal))
    return Found(places, scores)


def as_array(index: Any) -> np.ndarray:
    """Converts an index to bytes, uint8, to write to a file."""
    return imported_faiss().serialize_index(index)


def as_index(array: np.ndarray) -> Any:
    """Restores the index from the result of `as_array`."""
    return imported_faiss().deserialize_index(array)
