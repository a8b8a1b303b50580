"""Small texts, tokenizers for them, and sequences as lists, for tests of pre-training data."""

import collections
import dataclasses
import random
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from create_pretraining_data.instances.make_instances import (
    CorpusStatistics,
    InstanceSettings,
    make_records,
)
from create_pretraining_data.instances.packing import MAX_SEQUENCES
from create_pretraining_data.instances.pairs import PairRules, make_pairs
from create_pretraining_data.instances.sequences import Sequences, assemble
from create_pretraining_data.instances.text import TokenizedText
from create_pretraining_data.records.reader import parsing_spec
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat


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
    return sequences_of(text, make_pairs(text, index, rules, balance, rng), rules)


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
    words = [
        (start, min(end, (border if start < border else length) - 1))  # without [SEP]
        for start, end in zip(starts, [*starts[1:], length], strict=True)
    ]
    ids, segments = made.ids[row, :length].tolist(), [0] * border + [1] * (length - border)
    return Sequence(ids, segments, words, int(made.labels[row]) if labelled else None)


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


CLS, SEP, MASK, FIRST = 1, 2, 3, 4  # ids; those of syllables begin at FIRST
LENGTH, PLACES = 64, 16


class Syllables:
    """Pieces are characters."""

    pad_id, unk_id, vocab_size = 0, None, FIRST + 100

    def tokenize_words(self, text):
        return [list(word) for word in text.split()]

    def convert_tokens_to_ids(self, pieces):
        return [FIRST + ord(piece) - ord("가") for piece in pieces]


def settings_for(objective, packed=False, dynamic=False, passes=1, boundary=False, **changes):
    """The settings of records of `Syllables`; `changes` of the rules for masking and for pairs."""
    pair_rules = {"long_lines": changes.pop("long_lines")} if "long_lines" in changes else {}
    masking = MaskingRules(0.15, PLACES, True, 3, True, False, MASK, Syllables.vocab_size)
    masking = dataclasses.replace(masking, **changes)
    places, slots = PLACES * (1 + masking.do_permutation), MAX_SEQUENCES if packed else 0
    kept = masking if dynamic else None
    record_format = RecordFormat(LENGTH, places, objective != "none", boundary, slots, kept)
    rules = PairRules(objective, LENGTH, 0.1, CLS, SEP, **pair_rules)
    return InstanceSettings(rules, masking, record_format, passes)


def all_records(documents, tokenizer, settings):
    """The records of all passes, serialized, with the `CorpusStatistics`."""
    statistics = CorpusStatistics()
    passes = make_records(documents, tokenizer, settings, 7, statistics)
    return [record for of_pass in passes for record in of_pass], statistics


def parsed(records, record_format):
    """Their features as arrays."""
    features = tf.io.parse_example(records, parsing_spec(record_format))
    return {name: values.numpy() for name, values in features.items()}


def syllable_documents(seed=0):
    rng = random.Random(seed)

    def sentence():
        words = range(rng.randint(1, 6))
        return " ".join("".join(chr(ord("가") + rng.randrange(100)) for _ in "123") for _ in words)

    return [[sentence() for _ in range(rng.randint(1, 9))] for _ in range(120)]


def stored_sequences(records):
    """What each sequence of records is, however it is stored."""
    found = []
    for row in range(len(records["input_ids"])):
        r = {name: values[row] for name, values in records.items()}
        index = r.get("segment_index", r["input_mask"])
        used = np.flatnonzero(r["masked_lm_weights"])
        for number in range(1, index.max() + 1):
            places = np.flatnonzero(index == number)
            start = places[0]
            assert (places == start + np.arange(len(places))).all()
            inside = [p for p in used if start <= r["masked_lm_positions"][p] <= places[-1]]
            if "segment_index" in r:
                assert r["sequence_starts"][number - 1] == start
                assert (r["position_ids"][places] == np.arange(len(places))).all()
                assert r.get("next_sentence_weights", np.ones(number))[number - 1] == 1
            labels = r.get("next_sentence_labels")
            rows = [r["input_ids"][places], r["segment_ids"][places]]
            rows += [r.get("token_boundary", index * 0)[places]]
            rows += [r["masked_lm_positions"][inside] - start, r["masked_lm_ids"][inside]]
            found.append((*map(tuple, rows), None if labels is None else labels[number - 1]))
    return collections.Counter(found)


class CodePoints:
    """A tokenizer without "##": a word's pieces are its characters, their ids code points."""

    def tokenize_words(self, text):
        visible = "".join(c for c in text if c >= " ")  # drops control characters
        return [list(word) for word in visible.split()]

    def convert_tokens_to_ids(self, pieces):
        return [ord(piece) for piece in pieces]
