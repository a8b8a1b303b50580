"""Compares the time to find the nearest of many vectors with other libraries.

    python -m benchmarks.serving.search --vectors=1000000 --size=256

Vectors of length 1 are drawn; the queries are some of them with noise. Every way finds the ten
nearest by dot product. The table shows the share of the true ten that it finds (recall at 10; an
exact way finds all), the time to make its index, and the size of the file that it searches, which
holds the vectors, or the index with them.

The vectors are evenly distributed over all directions, unlike vectors of texts. This is the worst
case for the approximate index, as the ten nearest are hardly nearer than the others.
--file=vectors.npy searches vectors of real texts instead, as `model.embed` makes them; the last
vectors are the queries, and are not searched.

    search          finetuning.similarity.ranking.search, as `model.search` and the program call it
    numpy           products with all vectors, argpartition, for as many queries as fit into 1 GB
    faiss           IndexFlatIP, also exact; needs faiss-cpu
    faiss_hnsw      IndexHNSWFlat with 32 neighbours, as `search --approximate` makes it
"""

import importlib.util
import time
from pathlib import Path

import numpy as np

from benchmarks.common import cell, flag, launch, print_table, seconds_of, some_of, take_turns
from finetuning.similarity.approximate import as_array, make_index, search_index
from finetuning.similarity.ranking import search, unit_vectors

TOP = 10
MOST_PRODUCTS = 2**28  # 1 GB in float32
NOISE = 0.5  # length of the noise added to a vector of length 1


def main(options):
    """Prints a line for each way."""
    headings = ["way", "ms a query", "of the ten nearest", "made in s", "MB"]
    if options.file:
        vectors = unit_vectors(np.load(options.file))
        corpus, queries = vectors[: -options.queries], vectors[-options.queries :]
    else:
        corpus, queries = make_vectors(options)
    assert len(corpus) > TOP
    print_table(headings, rows(options, corpus, queries))


def rows(options, corpus, queries):
    """Yields a row for each way."""
    ways, making, sizes = {}, {}, {}
    for name in options.ways:
        start = time.perf_counter()
        ways[name], file_size = WAYS[name](corpus)
        making[name] = time.perf_counter() - start
        sizes[name] = file_size()
    runs = {name: lambda find=find: seconds_of(find, queries) for name, find in ways.items()}
    seconds = take_turns(runs, options.rounds)
    places = {name: find(queries) for name, find in ways.items()}
    true = next((places[name] for name in places if name not in APPROXIMATE), None)
    if true is None:
        true = make_search(corpus)[0](queries)
    for name, found in places.items():
        share = np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)])
        each = [1000 * taken / options.queries for taken in seconds[name]]
        megabytes = f"{sizes[name] / 1e6:,.2f}"
        made = f"{making[name]:.1f}"
        yield [name, cell(each, ".3f"), f"{share:.1%}", made, megabytes]


def directions(draw, count, size):
    """Draws vectors of length 1, evenly distributed over all directions, [count, size]."""
    return unit_vectors(draw.standard_normal((count, size), np.float32))


def make_vectors(options):
    """Draws the vectors that are searched, [N, H], and the queries, near some of them."""
    draw = np.random.default_rng(0)
    corpus = directions(draw, options.vectors, options.size)
    near = corpus[draw.integers(options.vectors, size=options.queries)]
    return corpus, unit_vectors(near + NOISE * directions(draw, *near.shape))


# Each of these returns a function from queries to the numbers of texts, and a function that returns
# the size of its file in bytes.


def make_search(corpus):
    """Makes this project's search, where the corpus need not have vectors of length 1."""

    def find(queries):
        return search(queries, corpus, TOP, normalize=True).places

    return find, lambda: corpus.nbytes


def make_numpy(corpus):
    """Makes a hand-written NumPy search."""

    def find(queries):
        count, places = max(1, MOST_PRODUCTS // len(corpus)), []
        for start in range(0, len(queries), count):
            products = queries[start : start + count] @ corpus.T  # [count, N]
            places.append(np.argpartition(-products, TOP, axis=1)[:, :TOP])
        return np.concatenate(places)

    return find, lambda: corpus.nbytes


def make_faiss(corpus):
    """Makes FAISS's exact index."""
    import faiss

    index = faiss.IndexFlatIP(corpus.shape[1])
    index.add(corpus)
    return lambda queries: index.search(queries, TOP)[1], lambda: as_array(index).nbytes


def make_hnsw(corpus):
    """Makes FAISS's approximate index, as this project writes it."""
    index = make_index(corpus)

    def find(queries):
        return search_index(index, queries, TOP).places

    return find, lambda: as_array(index).nbytes


WAYS = {
    "search": make_search,
    "numpy": make_numpy,
    "faiss": make_faiss,
    "faiss_hnsw": make_hnsw,
}
APPROXIMATE = ("faiss_hnsw",)


HAS_FAISS = importlib.util.find_spec("faiss") is not None
FLAGS = {
    "vectors": 1_000_000,
    "size": 256,
    "queries": 1000,
    "file": flag(None, "a .npy file of vectors, [N, H]", type=Path),
    "ways": some_of([name for name in WAYS if HAS_FAISS or "faiss" not in name], WAYS),
}


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=3)
