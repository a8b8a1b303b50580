"""Makes the records of one chunk of documents; knows nothing of files or processes."""

import collections
import dataclasses
import random

from create_pretraining_data.documents import tokenize_documents
from create_pretraining_data.instances import make_features, make_instances
from create_pretraining_data.masking import MaskingRules
from create_pretraining_data.pairs import PairRules, is_too_short_for_a_pair
from create_pretraining_data.record_format import RecordFormat, serialize

# To be raised when the same settings give other records, so that a run that was begun before
# the change is not gone on with.
VERSION = 1

# Why a document is left out.
NO_PIECE = "no piece in it"
ONE_WORD = "one word"


@dataclasses.dataclass(frozen=True)
class ChunkSettings:
    """What decides the records of a chunk, apart from its text, tokenizer and seed.

    Attributes:
        pair_rules: `PairRules`.
        masking_rules: `MaskingRules`.
        record_format: `RecordFormat`.
        dupe_factor: passes over the documents, each with other cuts and masks.
    """

    pair_rules: PairRules
    masking_rules: MaskingRules
    record_format: RecordFormat
    dupe_factor: int


@dataclasses.dataclass
class ChunkStatistics:
    """What a chunk was and what was made of it; two of them can be added.

    Attributes:
        documents: documents with a piece in them.
        single_sentence_documents: how many of them have one sentence.
        sentences: sentences with a piece in them.
        words: words, as the tokenizer cuts them.
        pieces: pieces of all sentences.
        unknown_pieces: how many of them are [UNK].
        examples: records, of all passes.
        label_ones: records of sentence label 1.
        lengths: from a length in pieces, padding left out, to the records of that length.
        left_out: from a reason to the documents of which no record was made.
    """

    documents: int = 0
    single_sentence_documents: int = 0
    sentences: int = 0
    words: int = 0
    pieces: int = 0
    unknown_pieces: int = 0
    examples: int = 0
    label_ones: int = 0
    lengths: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    left_out: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def __add__(self, other):
        names = [field.name for field in dataclasses.fields(self)]
        return ChunkStatistics(*(getattr(self, name) + getattr(other, name) for name in names))

    def as_json(self):
        """A dict that JSON can hold."""
        lengths = {str(length): count for length, count in sorted(self.lengths.items())}
        return {**vars(self), "lengths": lengths, "left_out": dict(sorted(self.left_out.items()))}

    @classmethod
    def from_json(cls, values):
        """The inverse of `as_json`."""
        lengths = collections.Counter({int(k): count for k, count in values["lengths"].items()})
        left_out = collections.Counter(values["left_out"])
        return cls(**{**values, "lengths": lengths, "left_out": left_out})


def make_chunk(documents, tokenizer, settings, seed):
    """Makes the records of one chunk, pass by pass.

    Args:
        documents: a list of documents, each a non-empty list of sentences, as text.
        tokenizer: cuts the sentences.
        settings: `ChunkSettings`.
        seed: a whole number from 0; together with the other arguments it decides every byte.

    Yields:
        For each of the `dupe_factor` passes a list of serialized `tf.train.Example`, shuffled.

    Returns:
        `ChunkStatistics`, when all passes were taken.
    """
    rng = random.Random(seed)
    statistics = ChunkStatistics()
    given = len(documents)
    documents = tokenize_documents(documents, tokenizer)
    _count_text(documents, tokenizer.unk_id, statistics)
    statistics.left_out[NO_PIECE] = given - len(documents)
    if settings.pair_rules.objective != "none":
        statistics.left_out[ONE_WORD] = sum(map(is_too_short_for_a_pair, documents))
    statistics.left_out += collections.Counter()  # only reasons that there were
    for _ in range(settings.dupe_factor):
        instances = make_instances(documents, settings.pair_rules, settings.masking_rules, 1, rng)
        statistics.examples += len(instances)
        statistics.label_ones += sum(instance.sentence_label or 0 for instance in instances)
        statistics.lengths.update(len(instance.input_ids) for instance in instances)
        yield [
            serialize(
                make_features(instance, settings.record_format, tokenizer.pad_id or 0),
                settings.record_format,
            )
            for instance in instances
        ]
    return statistics


def _count_text(documents, unk_id, statistics):
    statistics.documents = len(documents)
    statistics.single_sentence_documents = sum(len(document) == 1 for document in documents)
    for document in documents:
        statistics.sentences += len(document)
        for sentence in document:
            statistics.words += len(sentence.word_starts)
            statistics.pieces += len(sentence.ids)
            statistics.unknown_pieces += sentence.ids.count(unk_id)
