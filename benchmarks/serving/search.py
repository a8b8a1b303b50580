"""Measures how long it takes to find the nearest of many vectors, beside other libraries.

    python -m benchmarks.serving.search --vectors=1000000 --size=256 --queries=1000

Vectors of length 1 are drawn; the queries are some of them with noise. Every way finds the ten
nearest by the product. The exact ones must find the same; of the approximate one the table shows
the share of the true ten that it finds, and how long its index takes to make.

    search          finetuning.similarity.ranking.search, as `model.search` and the program call it
    numpy           products with all vectors, argpartition, for as many queries as fit 1 GB
    faiss           IndexFlatIP: exact too; needs faiss-cpu
    faiss_hnsw      IndexHNSWFlat with 32 neighbours, as `search --approximate` makes it
"""

import importlib.util
import time

import numpy as np

from benchmarks.common import (
    cell,
    launch,
    print_table,
    seconds_of,
    some_of,
    take_turns,
)
from finetuning.similarity.ranking import search, unit_vectors

TOP = 10
MOST_PRODUCTS = 2**28  # 1 GB in float32
NOISE = 0.5  # its length beside a vector of length 1


def main(options):
    """Prints a line for each way."""
    print_table(["way", "ms a query", "of the ten nearest", "made in s"], rows(options))


def rows(options):
    """Yields the rows of the table."""
    draw = np.random.default_rng(0)
    corpus = unit_vectors(draw.standard_normal((options.vectors, options.size), np.float32))
    near = corpus[draw.integers(options.vectors, size=options.queries)]
    noise = unit_vectors(draw.standard_normal(near.shape, np.float32))
    queries = unit_vectors(near + NOISE * noise)
    ways, making = {}, {}
    for name in options.ways:
        start = time.perf_counter()
        ways[name] = WAYS[name](corpus)
        making[name] = time.perf_counter() - start
    runs = {name: lambda find=find: seconds_of(find, queries) for name, find in ways.items()}
    seconds = take_turns(runs, options.rounds)
    places = {name: find(queries) for name, find in ways.items()}
    true = places[options.ways[0]]
    for name, found in places.items():
        share = np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)])
        each = [1000 * taken / options.queries for taken in seconds[name]]
        yield [name, cell(each, ".3f"), f"{share:.1%}", f"{making[name]:.1f}"]


def make_search(corpus):
    """This project's, whose corpus need not have vectors of length 1."""
    return lambda queries: search(queries, corpus, TOP, normalize=True).places


def make_numpy(corpus):
    """As one writes it by hand."""

    def find(queries):
        count, places = max(1, MOST_PRODUCTS // len(corpus)), []
        for start in range(0, len(queries), count):
            products = queries[start : start + count] @ corpus.T  # [count, N]
            places.append(np.argpartition(-products, TOP, axis=1)[:, :TOP])
        return np.concatenate(places)

    return find


def make_faiss(corpus):
    """Its exact index."""
    import faiss

    index = faiss.IndexFlatIP(corpus.shape[1])
    index.add(corpus)
    return lambda queries: index.search(queries, TOP)[1]


def make_hnsw(corpus):
    """Its approximate index that this project writes."""
    from finetuning.similarity.approximate import make_index, search_index

    index = make_index(corpus)
    return lambda queries: search_index(index, queries, TOP).places


WAYS = {
    "search": make_search,
    "numpy": make_numpy,
    "faiss": make_faiss,
    "faiss_hnsw": make_hnsw,
}


HAS_FAISS = importlib.util.find_spec("faiss") is not None
FLAGS = {
    "vectors": 1_000_000,
    "size": 256,
    "queries": 1000,
    "ways": some_of([name for name in WAYS if HAS_FAISS or "faiss" not in name], WAYS),
}


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=3)
