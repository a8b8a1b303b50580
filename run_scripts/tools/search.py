"""The program search: finds the lines of a file that are most like a query."""

import dataclasses
import hashlib
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.text_encoding import NAMES
from finetuning.similarity.data import own_texts
from finetuning.tables import ENDINGS, TABLE_ENDINGS, read_lines
from run_scripts.flags import groups
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.limits import MOST_SHOWN
from run_scripts.flags.parser import run_program
from run_scripts.flags.path_kinds import FILE, FOLDER

if TYPE_CHECKING:
    from korean_bert.model import Model

# What is added to the name of a corpus for the file of its vectors.
ENDING = ".vectors.npz"


@dataclasses.dataclass(frozen=True)
class SearchFlags(DeviceFlags):
    """Finds the texts of a file that are most like a query, by the cosines of their vectors.

    The vectors are kept beside the file, in CORPUS.vectors.npz, and computed again when the file or
    the model has changed. Without --query every line of the standard input is one."""

    EXAMPLE = "--model_dir=output/vectors --corpus=faq.csv --query='환불은 언제 되나요?'"

    model_dir: str = groups.MODEL.flag(
        None,
        "The folder of a model, best one that run_similarity trained. Default: the model that "
        "comes with this project.",
        is_input=True,
        takes=(FOLDER,),
    )
    corpus: str = groups.FILES.flag(
        None,
        f"The texts to search: {', '.join(ENDINGS)}, or any other file with a text a line.",
        required=True,
        is_input=True,
        takes=(FILE,),
    )
    text_column: str = groups.COLUMNS.flag(
        None,
        "The column, or key, of the text. Default: the one called text, sentence, question or "
        "the like.",
    )
    encoding: str = groups.COLUMNS.flag(
        None,
        "The encoding of the file. Default: recognized.",
        choices=tuple(NAMES),
    )
    query: str = groups.ANSWERS.flag(
        None, "The text to look for. Default: each line of standard input."
    )
    top: int = groups.ANSWERS.flag(10, "The number of texts to show.", least=1, most=MOST_SHOWN)


def main(argv: Sequence[str] | None = None) -> int:
    """The console script; returns the exit status."""
    return run_program(search, SearchFlags, argv)


def search(values: SearchFlags) -> None:
    """Prints the texts nearest to each query: the cosine and the text."""
    texts = read_corpus(values)
    start_tensorflow(values)
    from korean_bert.loading import load_model

    model = load_model(values.model_dir)
    vectors = corpus_vectors(model, values, texts)
    queries = [values.query] if values.query else (line.strip() for line in sys.stdin)
    for query in filter(None, queries):
        if not values.query:
            print(f"> {query}")
        for hit in model.search(query, vectors, values.top):
            print(f"{hit.score:.3f}\t{' '.join(texts[hit.place].split())}", flush=True)


def read_corpus(values: SearchFlags) -> list[str]:
    """The texts of --corpus.

    Raises:
        InputError: there is none, or the column must be named.
    """
    path = values.corpus
    if path.lower().endswith(ENDINGS):
        return own_texts(path, values.text_column, values.encoding)
    if values.text_column:
        raise InputError(
            f"--text_column is for files that end in {', '.join((*TABLE_ENDINGS, *ENDINGS[2:]))}. "
            f"Received: {path}"
        )
    texts = [line.strip() for _, line in read_lines(path, values.encoding) if line.strip()]
    if not texts:
        raise InputError(f"{path} must hold a text. Received: none")
    return texts


def corpus_vectors(model: "Model", values: SearchFlags, texts: list[str]) -> np.ndarray:
    """The vectors of the texts, [N, H]: the kept ones, if they are of file and model."""
    path = values.corpus + ENDING
    key = _key(model, values)
    kept = _read_kept(path, key)
    if kept is not None and len(kept) == len(texts):
        return kept
    vectors = model.embed(texts)
    content = io.BytesIO()
    np.savez(content, vectors=vectors, key=np.array(key))
    try:
        with atomic_write(path) as file:
            file.write(content.getvalue())
    except OSError as error:
        print(f"note: the vectors are not kept: {error}", file=sys.stderr)
    return vectors


def _key(model, values):
    """Writes what the vectors depend on, as text."""
    source = model.loaded.source
    files = [name for name in (source, f"{source}.index") if os.path.isfile(name)]
    weights = [(os.path.getsize(name), os.stat(name).st_mtime_ns) for name in files]
    content = hashlib.sha256(read_bytes(values.corpus)).hexdigest()
    length = model.max_length
    parts = (content, values.text_column, values.encoding, os.path.abspath(source), weights, length)
    return json.dumps(parts)


def _read_kept(path, key):
    """The vectors in a file, None if it is missing, damaged, or of other texts or weights."""
    try:
        with np.load(path) as arrays:
            return arrays["vectors"] if arrays["key"].item() == key else None
    except (OSError, ValueError, KeyError, EOFError):
        return None


if __name__ == "__main__":
    sys.exit(main())
