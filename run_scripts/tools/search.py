"""The search program, which finds the texts in a file that are most similar to a query."""

import dataclasses
import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert_common.atomic_write import atomic_write, remove_partial_files
from bert_common.errors import InputError
from bert_common.folders import check_utf8
from bert_common.text_encoding import NAMES
from finetuning.metrics import check_installed
from finetuning.similarity.approximate import (
    as_array,
    as_index,
    imported_faiss,
    make_index,
    search_index,
)
from finetuning.similarity.data import own_texts
from finetuning.similarity.lexical import Bm25, known_tokens
from finetuning.similarity.ranking import Found, unit_vectors
from finetuning.similarity.ranking import search as nearest
from finetuning.tables import ENDINGS, TABLE_ENDINGS, composed, read_lines
from korean_bert.search import DAMAGE, METHODS
from model_formats.model_folder import REFERENCE_VECTORS
from run_scripts.flags import groups
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.parser import run_program

if TYPE_CHECKING:
    from korean_bert.model import Model

# The endings added to a corpus's name for the files of its vectors and of their index.
ENDING, INDEX_ENDING = ".vectors.npz", ".index.npz"


@dataclasses.dataclass(frozen=True)
class SearchFlags(DeviceFlags):
    """Finds the texts in a file that are most similar to a query.

    The vectors of the texts are kept beside the file, in CORPUS.vectors.npz, and recomputed when
    the file or the model has changed. Without --query, every line of standard input is a query."""

    EXAMPLE = "--model_dir=output/vectors --corpus=faq.csv --query='환불은 언제 되나요?'"

    model_dir: str = groups.MODEL.input_folder(
        "The folder of a model, ideally trained by run_similarity. Default: reference_vectors, "
        "included in this project."
    )
    corpus: str = groups.FILES.input_file(
        f"The file to search: {', '.join(ENDINGS)}, or any other file with one text per line.",
        required=True,
    )
    text_column: str = groups.COLUMNS.optional(
        "The column or JSON key in --corpus with the text to search. Default: the column "
        "named text, sentence, question or the like.",
        convert=composed,
    )
    show_column: str = groups.COLUMNS.optional(
        "Another column or JSON key in --corpus, such as one with answers. Its value is "
        "printed after each text found.",
        convert=composed,
    )
    encoding: str = groups.COLUMNS.optional(
        "The encoding of --corpus. Default: detected.", choices=tuple(NAMES)
    )
    query: str = groups.ANSWERS.optional(
        "The text to search for. Default: each line of standard input."
    )
    method: str = groups.ANSWERS.flag(
        "vectors",
        "What to rank texts by. vectors: the cosine of their vectors and the query's. bm25: the "
        "tokens that they share with the query, weighted by BM25. hybrid: the sum of both, each "
        'standardized. bm25 and hybrid need the pip extra "finetune".',
        choices=METHODS,
    )
    approximate: bool = groups.ANSWERS.flag(
        False,
        "Search an approximate index of the vectors, which is saved beside the --corpus file "
        "as CORPUS.index.npz. Faster for millions of texts, but may miss some of the nearest "
        'texts. Needs the pip extra "search".',
        needs=("method=vectors",),
    )
    top: int = groups.ANSWERS.flag(10, "The number of texts to show per query.", least=1)


def search(values: SearchFlags) -> None:
    """Prints the texts nearest to each query: the score, the text and --show_column."""
    if values.query is not None and not values.query.strip():
        raise InputError(f"--query must hold a text. Received: {values.query!r}")
    if values.approximate:
        imported_faiss()
    if values.method != "vectors":
        check_installed(f"--method={values.method}")
    rows = read_corpus(values)
    texts = [row[0] for row in rows]
    start_tensorflow(values)
    from korean_bert.loading import load_model

    model = load_model(values.model_dir or REFERENCE_VECTORS)
    find = make_search(model, values, texts)
    queries = [values.query] if values.query else read_queries()
    for query in filter(None, queries):
        if not values.query:
            print(f"> {query}")
        found = find(query)
        for place, score in zip(found.places[0], found.scores[0], strict=True):
            if place >= 0:  # FAISS: -1 for none
                cells = (" ".join(cell.split()) for cell in rows[place])
                print(f"{score:.3f}", *cells, sep="\t", flush=True)


def read_queries() -> Iterator[str]:
    """Yields the lines of standard input."""
    try:
        for line in sys.stdin:
            check_utf8(line, "standard input")
            yield line.strip()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input must be UTF-8. Received: {error}") from None


def read_corpus(values: SearchFlags) -> Sequence[tuple[str, ...]]:
    """Reads the rows of --corpus: a text and, if given, its --show_column."""
    path = values.corpus
    if path.lower().endswith(ENDINGS):
        return own_texts(path, values.text_column, values.show_column, values.encoding)
    for name in ("text_column", "show_column"):
        if getattr(values, name):
            raise InputError(
                f"--{name} is for files that end in {', '.join((*TABLE_ENDINGS, *ENDINGS[2:]))}. "
                f"Received: {path}"
            )
    rows = [(line.strip(),) for _, line in read_lines(path, values.encoding) if line.strip()]
    if not rows:
        raise InputError(f"{path} must hold a text. Received: none")
    return rows


def make_search(model: "Model", values: SearchFlags, texts: list[str]) -> Callable[[str], Found]:
    """Returns a function that finds the texts nearest to a query."""

    def asked(query):
        return unit_vectors(model.embed([query]))  # [1, H]

    if values.approximate:
        path, key = values.corpus + INDEX_ENDING, _key(model, texts)
        array = _kept(path, key, lambda: as_array(make_index(corpus_vectors(model, values, texts))))
        index = as_index(array)
        return lambda query: search_index(index, model.embed([query]), values.top)
    if values.method == "vectors":
        vectors = corpus_vectors(model, values, texts)
        return lambda query: nearest(asked(query), vectors, values.top, normalize=True)
    bm25 = Bm25(texts, known_tokens(model.tokenizer))
    if values.method == "bm25":
        return lambda query: bm25.search([query], values.top)
    units = unit_vectors(corpus_vectors(model, values, texts))
    return lambda query: bm25.search_with_vectors([query], asked(query), units, values.top)


def corpus_vectors(model: "Model", values: SearchFlags, texts: list[str]) -> np.ndarray:
    """Returns the texts' vectors [N, H], the kept ones if they are of this file and model."""
    path, key = values.corpus + ENDING, _key(model, texts)
    return _kept(path, key, lambda: model.embed(texts))


def _kept(path, key, make):
    """Returns the array in a file if it has the key; else makes the array and keeps it there."""
    kept = _read_kept(path, key)
    if kept is not None:
        return kept
    made = make()
    try:
        remove_partial_files([path])
        with atomic_write(path) as file:  # not through memory: vectors may fill half of it
            np.savez(file, made=made, key=np.array(key))
    except OSError as error:
        print(f"note: the vectors are not kept: {error}", file=sys.stderr)
    return made


def _key(model, texts):
    """Returns what the vectors depend on, as text; the files may have changed since."""
    loaded, source = model.loaded, model.loaded.source
    files = [name for name in (source, f"{source}.index") if os.path.isfile(name)]
    weights = [(os.path.getsize(name), os.stat(name).st_mtime_ns) for name in files]
    content = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    made_by = loaded.config.to_dict(), model.pooling, loaded.settings.get("normalize")
    place = os.path.abspath(source), weights, model.tokenizer.fingerprint(), model.max_length
    return json.dumps((content, *place, *made_by), default=str)


def _read_kept(path, key):
    """Reads the array in a file; None if it is missing, damaged, or of other texts or weights."""
    try:
        with np.load(path) as arrays:
            return arrays["made"] if arrays["key"].item() == key else None
    except (*DAMAGE, KeyError, RuntimeError):
        return None


main = functools.partial(run_program, search, SearchFlags)

if __name__ == "__main__":
    sys.exit(main())
