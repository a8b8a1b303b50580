"""Writes and reads the intermediate files of one chunk, which group its records by bucket.

A bucket belongs to one shard. `chunk-000007` holds the framed records: for each pass over the text,
one bucket after another. `chunk-000007.index` says where they are, u8 [buckets, passes, 2] of
offsets and sizes. `chunk-000007.json` describes the chunk and is written last. The buckets of a
shard are adjacent, so that little else is read to build the shard.
"""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_common.atomic_write import atomic_write, write_json
from bert_common.json_text import parse_json
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.records.tfrecord import frame

# The offset and the size of the records of one bucket and pass.
_EXTENT = np.dtype(("<u8", 2))


class ChunkSummary(NamedTuple):
    """Holds the description of a chunk, the contents of its JSON file."""

    statistics: CorpusStatistics
    records: list[int]  # the number of records for each shard
    sizes: list[int]  # the bytes of the framed records for each shard


def index_path(path: str) -> str:
    """Returns the path of the index of a chunk, given the path of its records."""
    return f"{path}.index"


def summary_path(path: str) -> str:
    """Returns the path of the JSON file that marks a chunk as finished."""
    return f"{path}.json"


def chunk_files(path: str) -> tuple[str, str, str]:
    """Returns the paths of all files of a chunk."""
    return path, index_path(path), summary_path(path)


def index_size(buckets: int, passes: int) -> int:
    """Returns the bytes of a chunk's index, which grow with the size of the whole text."""
    return buckets * passes * _EXTENT.itemsize


def write_chunk_file(
    path: str,
    passes: Iterable[list[bytes]],
    statistics: CorpusStatistics,
    shards: int,
    buckets_per_shard: int,
    seed: int,
) -> ChunkSummary:
    """Distributes shuffled records to buckets, round robin from a random start.

    Only one pass of `make_records`, which completes the statistics, is in memory at a time. `seed`
    determines the bucket of the first record.
    """
    buckets = shards * buckets_per_shard
    turn = random.Random(seed).randrange(buckets)
    extents, records, sizes = [], [0] * shards, [0] * shards
    with atomic_write(path) as file:
        for serialized in passes:
            frames_of_buckets: list[list[bytes]] = [[] for _ in range(buckets)]
            for number, record in enumerate(serialized, start=turn):
                # Neighbours go to different shards, so that shards have equal sizes.
                shard, bucket = number % shards, number // shards % buckets_per_shard
                frames_of_buckets[shard * buckets_per_shard + bucket].append(frame(record))
            turn = (turn + len(serialized)) % buckets
            offset = file.tell()
            of_pass = np.empty(buckets, _EXTENT)  # a list would take ten times the memory
            for bucket, frames in enumerate(frames_of_buckets):
                content = b"".join(frames)
                file.write(content)
                of_pass[bucket] = offset, len(content)
                offset += len(content)
                records[bucket // buckets_per_shard] += len(frames)
                sizes[bucket // buckets_per_shard] += len(content)
            extents.append(of_pass)
    with atomic_write(index_path(path)) as file:
        file.write(np.stack(extents, axis=1).tobytes())  # [buckets, passes, 2]
    summary = ChunkSummary(statistics, records, sizes)
    write_json(summary_path(path), {**summary._asdict(), "statistics": statistics.as_json()})
    return summary


def read_chunk_summary(path: str) -> ChunkSummary:
    """Reads the `ChunkSummary` of a finished chunk."""
    values = parse_json(Path(summary_path(path)).read_bytes())
    statistics = CorpusStatistics.from_json(values["statistics"])
    return ChunkSummary(statistics, values["records"], values["sizes"])


def read_bucket(path: str, bucket: int, passes: int) -> Iterator[bytes]:
    """Yields the framed records of one bucket of a finished chunk, pass by pass, as bytes.

    Buckets are numbered across all shards.
    """
    start = index_size(bucket, passes)
    extents = np.fromfile(index_path(path), _EXTENT, passes, offset=start)  # [passes, 2]
    with open(path, "rb", buffering=0) as file:
        for offset, size in extents.tolist():
            file.seek(offset)
            yield file.read(size)
