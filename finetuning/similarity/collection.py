"""Reads queries, passages and their relevance in the format of BEIR's benchmarks."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from bert_common.errors import InputError
from finetuning.csv_tables import read_tsv
from finetuning.tables import read_objects, read_text


class Collection(NamedTuple):
    """The queries and texts that retrieval is measured on."""

    queries: list[str]
    corpus: list[str]
    # For each query, the numbers of the corpus texts that answer it -> their gains, above 0.
    relevant: list[dict[int, float]]
    # For each query, the number of the text with its id, which is not ranked; -1 if there is none
    # or it is relevant. Empty: no query has one.
    own: Sequence[int] = ()


def read_beir(queries: str, passages: str, relevance: str) -> Collection:
    """Reads a collection in BEIR's format, keeping only queries that have a relevant passage.

    A passage with the id of a query is not ranked for it, unless it is relevant.

    Args:
        queries: .jsonl with _id and text.
        passages: .jsonl with _id, text and optionally a title, which is put before the text.
        relevance: tab-separated query-id, corpus-id and score, with a header.
    """
    texts, asked = _read_texts(passages), _read_texts(queries)
    numbers = {name: number for number, name in enumerate(texts)}
    found: dict[str, dict[int, float]] = {}
    gains: dict[tuple[str, str], float] = {}
    for row, (where, cells) in enumerate(read_tsv(read_text(relevance), relevance)):
        if row == 0 and len(cells) == 3 and not _is_number(cells[2]) and cells[0] not in asked:
            continue  # the header
        if len(cells) != 3 or not _is_number(cells[2]):
            raise InputError(
                f"{where} must hold the id of a query, the id of a passage and a number. "
                f"Received: {' '.join(cells)[:80]}"
            )
        query, passage, gain = cells[0], cells[1], float(cells[2])
        for name, known in ((query, asked), (passage, texts)):
            if name not in known:
                raise InputError(
                    f"{where} must name what the queries and passages hold. Received: {name}"
                )
        if gains.setdefault((query, passage), gain) != gain:
            raise InputError(
                f"{where} must give a query and a passage one score. Received: "
                f"{gains[query, passage]:g} and {gain:g} for {query} and {passage}"
            )
        if gain > 0:
            found.setdefault(query, {})[numbers[passage]] = gain
    if not found:
        raise InputError(f"{relevance} must hold a passage with a score above 0. Received: none")
    if blank := [name for name in found if not asked[name]]:
        raise InputError(f"{queries}: a query must not be empty. Received: {blank[0]}")
    own = {name: numbers.get(name, -1) for name in found}
    return Collection(
        [asked[name] for name in found],
        list(texts.values()),
        list(found.values()),
        [-1 if own[name] in gains_of else own[name] for name, gains_of in found.items()],
    )


def _is_number(text):
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _read_texts(path: str) -> dict[str, str]:
    """Reads the texts of a file, id -> text."""
    texts: dict[str, str] = {}
    for where, entry in read_objects(path):
        name, text, title = entry.get("_id"), entry.get("text"), entry.get("title") or ""
        if not isinstance(name, str | int) or not isinstance(text, str):
            raise InputError(f"{where} must have _id and text. Received: {', '.join(entry)}")
        if str(name) in texts:
            raise InputError(f"{where}: the _id must be unique. Received: {name} twice")
        texts[str(name)] = f"{title} {text}".strip()
    if not any(texts.values()):  # if all are empty, there is no word to weigh
        raise InputError(f"{path} must hold a text. Received: none")
    return texts


def of_pairs(pairs: Sequence[tuple[str, str]]) -> Collection:
    """Makes the collection of (query, text that answers it) pairs; equal texts count once.

    Queries and texts are in the order of their first pairs.
    """
    corpus: dict[str, int] = {}
    relevant: dict[str, dict[int, float]] = {}
    for query, text in pairs:
        number = corpus.setdefault(text, len(corpus))
        relevant.setdefault(query, {})[number] = 1.0
    return Collection(list(relevant), list(corpus), list(relevant.values()))


def beir_files(folder: str, split: str) -> tuple[str, str, str]:
    """Returns the paths of queries, passages and relevance in a folder with BEIR's layout."""
    qrels = os.path.join(folder, "qrels", f"{split}.tsv")
    return os.path.join(folder, "queries.jsonl"), os.path.join(folder, "corpus.jsonl"), qrels
