"""Texts from lists of pieces, sequences as lists again, for tests of pre-training data."""

from typing import NamedTuple

import numpy as np

from create_pretraining_data.instances.pairs import make_pairs
from create_pretraining_data.instances.sequences import Sequences, assemble
from create_pretraining_data.instances.text import TokenizedText


class Sentence(NamedTuple):
    """A line of a document."""

    ids: list[int]
    word_starts: list[int]  # where in ids each word begins


class Sequence(NamedTuple):
    """A row of `Sequences`, not padded."""

    ids: list[int]
    segment_ids: list[int]
    words: list[tuple[int, int]]  # (start, end) in ids
    sentence_label: int | None


def text_of(documents):
    """A `TokenizedText` of documents, lists of `Sentence`."""
    sentences = [sentence for document in documents for sentence in document]
    bounds = np.cumsum([0, *(len(sentence.ids) for sentence in sentences)]).tolist()
    starts = np.zeros(bounds[-1], bool)
    for offset, sentence in zip(bounds, sentences, strict=False):
        starts[[offset + start for start in sentence.word_starts]] = True
    ids = [piece for sentence in sentences for piece in sentence.ids]
    documents = np.cumsum([0, *map(len, documents)]).tolist()
    return TokenizedText(np.array(ids, np.int32), starts, bounds, documents)


def make_sequences(text, index, rules, balance, rng):
    """`make_pairs`, assembled: a list of `Sequence`."""
    pairs = make_pairs(text, index, rules, balance, rng)
    return sequences_of(text, pairs, rules)


def sequences_of(text, pairs, rules):
    """Pairs as a list of `Sequence`."""
    if not pairs:
        return []
    made = assemble(text, np.array(pairs), rules)
    return [row_of(made, row, rules.objective != "none") for row in range(len(pairs))]


def row_of(made, row, labelled=True):
    """A row of `Sequences` as a `Sequence`."""
    length, border = int(made.lengths[row]), int(made.borders[row])
    starts = np.flatnonzero(made.word_starts[row]).tolist()
    ends = [*starts[1:], length]
    ends = [
        min(e, border - 1 if s < border else length - 1) for s, e in zip(starts, ends, strict=True)
    ]
    label = int(made.labels[row]) if labelled else None
    segments = [0] * border + [1] * (length - border)
    return Sequence(
        made.ids[row, :length].tolist(), segments, list(zip(starts, ends, strict=True)), label
    )


def sequences_from(rows, width=None):
    """`Sequences` of a list of `Sequence`, as wide as the longest without a `width`."""
    width = width or max(len(row.ids) for row in rows)
    ids, starts = np.zeros((len(rows), width), np.int32), np.zeros((len(rows), width), bool)
    for made, flags, row in zip(ids, starts, rows, strict=True):
        made[: len(row.ids)] = row.ids
        flags[[start for start, _ in row.words]] = True
    lengths = np.array([len(row.ids) for row in rows])
    borders = np.array([row.segment_ids.count(0) for row in rows])
    labels = np.array([row.sentence_label or 0 for row in rows])
    return Sequences(ids, starts, lengths, borders, labels)
