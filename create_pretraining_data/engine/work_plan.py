"""Defines the plan of a run: its chunks, shards, files, seeds and estimated sizes."""

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from create_pretraining_data.engine.splitting import TextRange
from create_pretraining_data.instances.make_instances import InstanceSettings
from create_pretraining_data.records.shard_names import without_shard
from tokenization.loading import Tokenizer

# The size of a bucket in bytes; a worker shuffles a whole bucket in memory.
BUCKET_BYTES = 64_000_000

COMPRESSIONS = ("none", "GZIP")


@dataclasses.dataclass(frozen=True)
class WorkPlan:
    """Holds everything that determines the files of a run."""

    chunks: list[list[TextRange]]  # the input ranges of each chunk
    continued: set[int]  # the numbers of the chunks that begin inside a cut document
    split_sentences: bool  # whether to split lines into sentences
    drop_duplicates: str  # which repeats to leave out, a key of `repeats.DROPPED_KINDS`
    settings: InstanceSettings
    tokenizer: Tokenizer
    manifest: Mapping[str, Any]  # what determines the bytes of the records, by names of flags
    seed: int
    output_files: list[str]  # one per shard
    compression: str  # one of `COMPRESSIONS`
    buckets_per_shard: int  # the number of parts of a shard, which are shuffled one at a time
    folder: str  # the work folder

    def chunk_size(self, number: int) -> int:
        """Returns the size of a chunk's text in bytes."""
        return sum(part.size for part in self.chunks[number])

    def existing_files(self) -> set[str]:
        """Returns the paths of the files in the work folder.

        Call this before opening a file that may be missing: otherwise a network file system may
        report the file as missing for a minute after a different machine has written it.
        """
        return {os.path.join(self.folder, name) for name in os.listdir(self.folder)}

    def chunk_path(self, number: int) -> str:
        """Returns the path of the file that keeps a chunk's records until shards are written."""
        return os.path.join(self.folder, f"chunk-{number:06d}")

    def shard_marker_path(self, shard: int) -> str:
        """Returns the path of the file that marks a shard as finished."""
        return os.path.join(self.folder, f"shard-{shard:05d}.json")


def derive_seed(*parts: str | int) -> int:
    """Hashes names and numbers to a seed of 64 bits."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def count_buckets(estimated_bytes: int, shards: int) -> int:
    """Returns the number of buckets per shard for buckets of about `BUCKET_BYTES`."""
    return max(1, round(estimated_bytes / shards / BUCKET_BYTES))


def work_folder_for(output_files: Sequence[str]) -> str:
    """Returns the work folder, a hidden folder next to the first output file."""
    folder, name = os.path.split(without_shard(output_files[0]))
    return os.path.join(folder, f".{name}.work")
