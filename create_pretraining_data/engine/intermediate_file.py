"""The file of one chunk's records, grouped by the bucket that they were dealt to.

A bucket belongs to one shard. The file holds, for each pass, the records of bucket after bucket
with their frames; then an index, a JSON object about the chunk, and the sizes of both. Buckets of
one shard lie side by side, so that making a shard reads little besides it. Records, rows of the
index and all after the records have checksums: a file that is damaged is noticed.
"""

import json
import os
import random
import struct
from typing import NamedTuple

import google_crc32c

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from create_pretraining_data.instances.make_instances import ChunkStatistics
from create_pretraining_data.records.tfrecord import frame

# At the end of the file: where the index starts, where the JSON starts, where it ends, how many
# passes there are, the checksum of index and JSON, what file this is; then a checksum of that.
_FOOTER = struct.Struct("<QQQII8s")
_MAGIC = b"chunk-02"
# A row of the index: for each pass where the bucket's records start and how many bytes they are;
# then a checksum of that.
_EXTENT = struct.Struct("<QQ")
_CHECKSUM = struct.Struct("<I")


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
    with atomic_write(path) as file:
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
    rows = b"".join(
        _checked(b"".join(_EXTENT.pack(*row[bucket]) for row in extents))
        for bucket in range(buckets)
    )
    about = index + len(rows)
    summary = {"statistics": statistics.as_json(), "records": records, "sizes": sizes}
    content = rows + json.dumps(summary).encode()
    end, checksum = index + len(content), google_crc32c.value(content)
    footer = _FOOTER.pack(index, about, end, len(extents), checksum, _MAGIC)
    file.write(content + _checked(footer))


def _checked(content):
    """Bytes with their checksum."""
    return content + _CHECKSUM.pack(google_crc32c.value(content))


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
            index, about, end, _, checksum = footer
            content = os.pread(file.fileno(), end - index, index)
    except FileNotFoundError:
        return None
    if google_crc32c.value(content) != checksum:
        return None
    values = json.loads(content[about - index :])
    statistics = ChunkStatistics.from_json(values["statistics"])
    return Summary(statistics, values["records"], values["sizes"])


def _read_footer(file):
    """What stands in the footer, without what file it is; None if the file is not whole."""
    size = os.fstat(file.fileno()).st_size
    length = _FOOTER.size + _CHECKSUM.size
    if size < length:
        return None
    content = os.pread(file.fileno(), length, size - length)
    *footer, magic = _FOOTER.unpack(content[: _FOOTER.size])
    # A file system that lost its power may have kept a name without its contents.
    is_whole = content == _checked(content[: _FOOTER.size]) and footer[2] == size - length
    return footer if is_whole and magic == _MAGIC else None


def read_bucket(path, bucket):
    """Reads the records of one bucket, of all passes.

    Args:
        path: a file that `write_chunk_file` wrote.
        bucket: its number, counted over all shards.

    Yields:
        Bytes: records with their frames.

    Raises:
        InputError: the file is not whole, or its index is damaged.
    """
    with open(path, "rb", buffering=0) as file:
        footer = _read_footer(file)
        if footer is None:
            raise InputError(f"{path} must be whole. Received: a file without its end; delete it")
        index, _, _, passes, _ = footer
        width = _EXTENT.size * passes + _CHECKSUM.size
        row = os.pread(file.fileno(), width, index + bucket * width)
        extents = row[: -_CHECKSUM.size]
        if row != _checked(extents):
            raise InputError(
                f"{path} must be as it was written. Received: a damaged index; delete it and "
                "start again"
            )
        for offset, size in _EXTENT.iter_unpack(extents):
            if size:
                yield os.pread(file.fileno(), size, offset)
