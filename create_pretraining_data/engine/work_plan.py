"""Defines the plan of a run: its chunks, shards, files, seeds and estimated sizes."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence

from create_pretraining_data.engine.splitting import TextRange
from create_pretraining_data.instances.make_instances import InstanceSettings
from create_pretraining_data.records.shard_names import without_shard
from create_pretraining_data.records.tfrecord import FRAME

# The size of a bucket, which a worker shuffles in memory.
BUCKET_BYTES = 64_000_000

# For the number of buckets only. Korean in morphemes and English in WordPiece are both near it; a
# vocabulary of syllables has fewer.
_BYTES_PER_PIECE = 4.7
# The factor by which records outnumber those that the text would fill, as measured on Korean
# Wikipedia at 128 and 512 tokens. Next-sentence data uses sentences repeatedly.
_RECORDS_OF_FULL = {"nsp": 1.5, "sop": 1.0, "none": 1.0}

COMPRESSIONS = ("none", "GZIP")


@dataclasses.dataclass(frozen=True)
class WorkPlan:
    """Everything but the tokenizer that determines the files of a run."""

    chunks: list[list[TextRange]]  # for each chunk, its ranges of the input
    continued: set[int]  # the chunks that begin inside a document that had to be cut
    split_sentences: bool  # whether lines are running text, to be split into sentences
    drop_duplicates: str  # which repeats are left out, a key of `repeats.DROPPED_KINDS`
    settings: InstanceSettings
    seed: int
    output_files: list[str]  # one for each shard
    compression: str  # one of `COMPRESSIONS`
    buckets_per_shard: int  # the number of parts in which a shard is shuffled
    folder: str  # the work folder

    def chunk_size(self, number: int) -> int:
        """The size of a chunk's text in bytes."""
        return sum(part.size for part in self.chunks[number])

    def existing_files(self) -> set[str]:
        """The paths of the files in the work folder.

        To be called before a file that may be missing is opened: a network file system may remember
        for a minute that it was missing, while another machine writes it.
        """
        return {os.path.join(self.folder, name) for name in os.listdir(self.folder)}

    def chunk_path(self, number: int) -> str:
        """The file that keeps the records of a chunk until the shards are written."""
        return os.path.join(self.folder, f"chunk-{number:06d}")

    def shard_marker_path(self, shard: int) -> str:
        """The file that marks a shard as finished."""
        return os.path.join(self.folder, f"shard-{shard:05d}.json")


def derive_seed(*parts: str | int) -> int:
    """Hashes names and numbers to a seed of 64 bits."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def rough_records_size(text_bytes: int, settings: InstanceSettings) -> int:
    """The rough uncompressed size, in bytes, of the records of a text of `text_bytes`.

    It decides on the buckets, hence on the order of the records, so it stays as it is. Short texts
    give several times as much; `size_estimate` measures.
    """
    record_format = settings.record_format
    pieces = settings.dupe_factor * text_bytes / _BYTES_PER_PIECE
    length = record_format.max_seq_length
    # Packed rows are full; of other records, more end early, with their document, if longer.
    of_full = 1.03 if record_format.packed_sequences else 0.95 + length / 1500
    records = pieces / length * of_full * _RECORDS_OF_FULL[settings.pair_rules.objective]
    return int(records * _record_size(record_format, 1 / of_full))


def _record_size(record_format, filled):
    # An id takes two bytes, any other number one; tags and lengths around a name take 10.
    size = FRAME
    for name, (length, kind) in record_format.features().items():
        width = 4 if kind == "float" else 1 + filled if name == "input_ids" else 1
        size += len(name) + 10 + length * width
    return size


def count_buckets(estimated_bytes: int, shards: int) -> int:
    """The number of buckets per shard for buckets of about `BUCKET_BYTES`."""
    return max(1, round(estimated_bytes / shards / BUCKET_BYTES))


def work_folder_for(output_files: Sequence[str]) -> str:
    """The hidden folder beside the first output file."""
    folder, name = os.path.split(without_shard(output_files[0]))
    return os.path.join(folder, f".{name}.work")
