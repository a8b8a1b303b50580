"""The file of one chunk's records, grouped by the bucket that they were dealt to.

A bucket belongs to one shard. The file holds, for each pass, the records of bucket after bucket
with their frames; then an index, a JSON object about the chunk, and the sizes of both. Buckets of
one shard lie side by side, so that making a shard reads little besides it.
"""

import json
import os
import random
import struct
from typing import NamedTuple

from create_pretraining_data.chunk import ChunkStatistics
from create_pretraining_data.tfrecord import frame
from create_pretraining_data.whole_file import whole_file
from tokenization.errors import InputError

# At the end of the file: where the index starts, where the JSON starts, where it ends, how many
# passes there are, what file this is.
_FOOTER = struct.Struct("<QQQI8s")
_MAGIC = b"chunk-01"
# For each bucket, for each pass: where its records start and how many bytes they are.
_EXTENT = struct.Struct("<QQ")


class Summary(NamedTuple):
    """What is known of a chunk's file without its records."""

    statistics: ChunkStatistics
    records: list[int]  # of each shard
    sizes: list[int]  # of each shard: bytes of records with their frames


def write_chunk_file(path, passes, shards, buckets_per_shard, seed):
    """Deals records to buckets, shuffled as they come, round robin from a random start.

    One pass is in memory at a time. The file is there once it is whole.

    Args:
        path: the file to write; a hidden file beside it is removed when anything fails.
        passes: a generator as `make_chunk` returns it.
        shards: how many shards there will be.
        buckets_per_shard: how many buckets each has.
        seed: decides the start.

    Raises:
        InputError: the file cannot be written, for example on a full disk.
    """
    turn = random.Random(seed).randrange(shards * buckets_per_shard)
    with whole_file(path) as file:
        _write(file, passes, shards, buckets_per_shard, turn)


def _write(file, passes, shards, buckets_per_shard, turn):
    buckets = shards * buckets_per_shard
    extents, records, sizes = [], [0] * shards, [0] * shards
    while True:
        try:
            made = next(passes)
        except StopIteration as end:
            statistics = end.value
            break
        ends = [[] for _ in range(buckets)]
        for number, record in enumerate(made, start=turn):
            # Neighbours go to different shards, so that shards are even.
            shard, bucket = number % shards, number // shards % buckets_per_shard
            ends[shard * buckets_per_shard + bucket].append(frame(record))
        turn = (turn + len(made)) % buckets
        offset = file.tell()
        row = []
        for bucket, frames in enumerate(ends):
            content = b"".join(frames)
            file.write(content)
            row.append((offset, len(content)))
            offset += len(content)
            records[bucket // buckets_per_shard] += len(frames)
            sizes[bucket // buckets_per_shard] += len(content)
        extents.append(row)
    index = file.tell()
    for bucket in range(buckets):
        file.writelines(_EXTENT.pack(*row[bucket]) for row in extents)
    about = file.tell()
    summary = {"statistics": statistics.as_json(), "records": records, "sizes": sizes}
    file.write(json.dumps(summary).encode())
    file.write(_FOOTER.pack(index, about, file.tell(), len(extents), _MAGIC))


def read_summary(path):
    """Reads what a chunk's file is about.

    Args:
        path: where the file would be.

    Returns:
        A `Summary`, or None if there is no whole file.
    """
    try:
        with open(path, "rb") as file:
            footer = _read_footer(file)
            if footer is None:
                return None
            _, about, end, _ = footer
            values = json.loads(os.pread(file.fileno(), end - about, about))
    except FileNotFoundError:
        return None
    statistics = ChunkStatistics.from_json(values["statistics"])
    return Summary(statistics, values["records"], values["sizes"])


def _read_footer(file):
    """Where the index starts, where the JSON starts and ends, passes; None if it is not whole."""
    size = os.fstat(file.fileno()).st_size
    if size < _FOOTER.size:
        return None
    content = os.pread(file.fileno(), _FOOTER.size, size - _FOOTER.size)
    index, about, end, passes, magic = _FOOTER.unpack(content)
    # A file system that lost its power may have kept a name without its contents.
    return (index, about, end, passes) if (magic, end) == (_MAGIC, size - _FOOTER.size) else None


def read_bucket(path, bucket):
    """Reads the records of one bucket, of all passes.

    Args:
        path: a file that `write_chunk_file` wrote.
        bucket: its number, counted over all shards.

    Yields:
        Bytes: records with their frames.

    Raises:
        InputError: the file is not whole.
    """
    with open(path, "rb", buffering=0) as file:
        footer = _read_footer(file)
        if footer is None:
            raise InputError(f"{path} must be whole. Received: a file without its end; delete it")
        index, _, _, passes = footer
        width = _EXTENT.size * passes
        for offset, size in _EXTENT.iter_unpack(
            os.pread(file.fileno(), width, index + bucket * width)
        ):
            if size:
                yield os.pread(file.fileno(), size, offset)
