"""Turns one chunk of documents into training instances, serialized as records."""

import collections
import dataclasses
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.coverage import NO_PIECE, ONE_WORD, Coverage
from create_pretraining_data.instances.dynamic_masking import make_dynamic_features
from create_pretraining_data.instances.features import make_features
from create_pretraining_data.instances.masking import mask_sequences, prediction_counts
from create_pretraining_data.instances.packing import lay_out, pack
from create_pretraining_data.instances.pairs import (
    LengthBalance,
    Pair,
    PairRules,
    is_too_short_for_a_pair,
    make_pairs,
)
from create_pretraining_data.instances.sequences import assemble, lengths_and_borders
from create_pretraining_data.instances.text import concatenate, tokenize_documents
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from tokenization.base import TokenizerInterface

# Increase this whenever the same settings give different records, so that runs from before the
# change are not resumed.
VERSION = 5

# The number of sequences processed at a time, whose arrays fit in the processor's cache.
BATCH = 512


@dataclasses.dataclass(frozen=True)
class InstanceSettings:
    """Holds the settings that determine the records, with the text, tokenizer and seed."""

    pair_rules: PairRules
    masking_rules: MaskingRules
    record_format: RecordFormat
    dupe_factor: int  # the number of passes over the documents, with different masks and pairs


@dataclasses.dataclass
class CorpusStatistics:
    """Counts a text and its records, for a chunk or the whole corpus; instances can be added."""

    _BY_REASON: ClassVar[tuple[str, ...]] = ("left_out", "pieces_in_no_row")

    documents: int = 0  # those with at least one token
    single_sentence_documents: int = 0
    sentences: int = 0  # those with at least one token
    words: int = 0  # as the tokenizer splits them
    pieces: int = 0  # the tokens of all sentences
    unknown_pieces: int = 0  # the tokens that are [UNK]
    long_lines: int = 0  # longer than a row; if they are split, `sentences` counts their parts
    repeated_lines: int = 0  # left out by --drop_duplicates
    sequences: int = 0  # of all passes
    label_ones: int = 0  # sequences with sentence label 1
    from_same_document: int = 0  # random next sentences drawn from their own document
    examples: int = 0  # records; equal to sequences unless rows are packed
    # Maps a length in tokens, without padding, to the number of records with that length.
    lengths: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    # Maps a reason to the number of documents without a record.
    left_out: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    # Maps a reason to the number of tokens that are in no row of any pass.
    pieces_in_no_row: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )

    def __add__(self, other: "CorpusStatistics") -> "CorpusStatistics":
        names = [field.name for field in dataclasses.fields(self)]
        return CorpusStatistics(*(getattr(self, name) + getattr(other, name) for name in names))

    def as_json(self) -> dict[str, Any]:
        """Returns the counts as a dict of JSON values."""
        lengths = {str(length): count for length, count in sorted(self.lengths.items())}
        reasons = {name: dict(sorted(getattr(self, name).items())) for name in self._BY_REASON}
        return {**vars(self), "lengths": lengths, **reasons}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Creates an instance from the result of `as_json`."""
        lengths = collections.Counter({int(k): count for k, count in values["lengths"].items()})
        reasons = {name: collections.Counter(values[name]) for name in cls._BY_REASON}
        return cls(**{**values, "lengths": lengths, **reasons})


def make_records(
    documents: Sequence[Iterable[str]],
    tokenizer: TokenizerInterface,
    settings: InstanceSettings,
    seed: int,
    statistics: CorpusStatistics,
    read_others: Callable[[], Iterable[Iterable[str]]] = list,
) -> Iterator[list[bytes]]:
    """Creates the records of one chunk, pass by pass.

    Args:
        documents: non-empty lists of sentences, as text.
        seed: a non-negative integer; with the other arguments it determines every byte.
        statistics: is filled with the counts of the chunk, complete after the last pass.
        read_others: returns other documents; called only if random next sentences are needed and
            the chunk has a single document.

    Yields:
        A shuffled list of serialized `tf.train.Example` for each of the `dupe_factor` passes.
    """
    rules = settings.pair_rules
    # Without pairs, rows are filled to the last word, so no line needs splitting.
    longest = rules.room if rules.long_lines == "split" and rules.objective != "none" else None
    text = tokenize_documents(documents, tokenizer, longest)
    _count_text(text, tokenizer.unk_id, rules.room, statistics)
    statistics.left_out[NO_PIECE] = len(documents) - text.num_documents
    if rules.objective != "none":
        statistics.left_out[ONE_WORD] = sum(
            is_too_short_for_a_pair(text, index) for index in range(text.num_documents)
        )
    statistics.left_out += collections.Counter()  # removes reasons with a count of 0
    num_documents, is_random = text.num_documents, rules.objective == "nsp"
    coverage = Coverage(text, rules)
    if is_random and num_documents == 1:
        text = concatenate(text, tokenize_documents(read_others(), tokenizer, longest))
    rng, balance = random.Random(seed), LengthBalance()
    # RandomState draws the same numbers in every version of NumPy.
    order, row_order = (np.random.RandomState(rng.getrandbits(32)) for _ in range(2))
    for _ in range(settings.dupe_factor):
        pairs = [
            pair
            for index in range(num_documents)
            for pair in make_pairs(text, index, rules, balance, rng)
        ]
        pairs = np.array(pairs, np.int64).reshape(-1, len(Pair._fields))
        coverage.add(pairs)
        pairs = pairs[order.permutation(len(pairs))]
        # The masks of a sequence do not depend on the row that it is packed into.
        numbers = np.arange(statistics.sequences, statistics.sequences + len(pairs))
        keys = derive_keys(np.uint64(seed), numbers)
        records = []
        for part, layout in _batches(pairs, settings, row_order):
            sequences = assemble(text, pairs[part], rules)
            records += _encode(sequences, layout, settings, keys[part], tokenizer.pad_id or 0)
            _count_records(sequences, layout, statistics)
        statistics.sequences += len(pairs)
        ones = int(pairs[:, -1].sum())
        statistics.label_ones += ones
        statistics.from_same_document += ones if is_random and text.num_documents == 1 else 0
        yield records
    statistics.pieces_in_no_row = coverage.count_missing()


def _encode(sequences, layout, settings, keys, pad_id):
    """Encodes sequences as records, with their masks unless these are drawn at each reading."""
    record_format = settings.record_format
    if record_format.masking is not None:
        features = make_dynamic_features(sequences, layout, record_format, pad_id)
    else:
        masked = mask_sequences(sequences, settings.masking_rules, keys)
        features = make_features(sequences, masked, layout, record_format, pad_id)
    return encode_records(features, record_format)


def _batches(pairs, settings, row_order):
    """Assigns pairs to records; yields batches of records as (indices of pairs, `Layout`)."""
    record_format, rules = settings.record_format, settings.masking_rules
    lengths, _ = lengths_and_borders(pairs)
    rows = np.arange(len(pairs))
    if record_format.packed_sequences:
        rows = pack(
            lengths,
            prediction_counts(lengths, rules) * (1 + rules.do_permutation),
            record_format.max_seq_length,
            record_format.max_predictions_per_seq,
            record_format.packed_sequences,
        )
        # Shuffled because packing sorts rows by how full they are.
        rows = row_order.permutation(rows.max(initial=-1) + 1)[rows]
    by_row = np.argsort(rows, kind="stable")
    ends = np.cumsum(np.bincount(rows))  # the end of each row's sequences in by_row
    first = 0
    while first < len(rows):
        # The largest number of complete rows with at most BATCH sequences.
        last = ends[np.searchsorted(ends, first + BATCH, side="right") - 1]
        part = by_row[first:last]
        yield part, lay_out(rows[part], lengths[part])
        first = last


def _count_text(text, unk_id, room, statistics):
    statistics.documents = text.num_documents
    statistics.single_sentence_documents = int((np.diff(text.documents) == 1).sum())
    statistics.sentences = len(text.sentences) - 1
    statistics.words = int(text.word_starts.sum())
    statistics.pieces = len(text.ids)
    statistics.unknown_pieces = int((text.ids == unk_id).sum())  # 0 if unk_id is None
    statistics.long_lines = text.split_lines + int((np.diff(text.sentences) > room).sum())


def _count_records(sequences, layout, statistics):
    statistics.examples += layout.num_rows
    filled = np.bincount(layout.rows, sequences.lengths).astype(int)
    lengths, counts = np.unique(filled, return_counts=True)
    statistics.lengths.update(dict(zip(lengths.tolist(), counts.tolist(), strict=True)))
