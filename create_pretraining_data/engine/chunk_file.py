"""Declares the intermediate file of one chunk, which groups its records by bucket.

A bucket belongs to one shard. For each pass over the text, the file holds the framed records of one
bucket after another; then follow an index, a JSON object that describes the chunk, and a footer.
The buckets of a shard are adjacent, so that little else is read to build the shard. Checksums
protect the records, each row of the index and everything after the records.
"""

import json
import os
import random
import struct
from collections.abc import Generator, Iterator
from typing import NamedTuple

import google_crc32c
import numpy as np

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.records.tfrecord import frame

# The footer: the offsets of the index, of the JSON and of its end, the number of passes, the
# checksum of index and JSON, and the file type, followed by the checksum of all these.
_FOOTER = struct.Struct("<QQQII8s")
_MAGIC = b"chunk-02"
# A row of the index: the offset and size of the bucket's records for each pass, followed by the
# checksum of the row.
_EXTENT = struct.Struct("<QQ")
_CHECKSUM = struct.Struct("<I")
# The number of rows to make at a time: with much text, a file has a hundred thousand.
_ROWS = 1024


def index_size(buckets: int, passes: int) -> int:
    """Returns the bytes of a chunk file's index, which grow with the size of the whole text."""
    return buckets * (_EXTENT.size * passes + _CHECKSUM.size)


class ChunkSummary(NamedTuple):
    """Holds the description of a chunk that its file contains."""

    statistics: CorpusStatistics
    records: list[int]  # the number of records for each shard
    sizes: list[int]  # the bytes of the framed records for each shard


def write_chunk_file(
    path: str,
    passes: Generator[list[bytes], None, CorpusStatistics],
    shards: int,
    buckets_per_shard: int,
    seed: int,
) -> ChunkSummary:
    """Distributes shuffled records to buckets, round robin from a random start.

    Only one pass of `make_records` is in memory at a time. The file is written atomically. `seed`
    determines the bucket of the first record.
    """
    turn = random.Random(seed).randrange(shards * buckets_per_shard)
    with atomic_write(path) as file:
        return _write(file, passes, shards, buckets_per_shard, turn)


def _write(file, passes, shards, buckets_per_shard, turn):
    buckets = shards * buckets_per_shard
    extents, records, sizes = [], [0] * shards, [0] * shards
    while True:
        try:
            serialized = next(passes)
        except StopIteration as end:
            statistics = end.value
            break
        frames_of_buckets: list[list[bytes]] = [[] for _ in range(buckets)]
        for number, record in enumerate(serialized, start=turn):
            # Neighbours go to different shards, so that shards have equal sizes.
            shard, bucket = number % shards, number // shards % buckets_per_shard
            frames_of_buckets[shard * buckets_per_shard + bucket].append(frame(record))
        turn = (turn + len(serialized)) % buckets
        offset = file.tell()
        row = np.empty((buckets, 2), "<u8")  # not a list, which would take ten times the memory
        for bucket, frames in enumerate(frames_of_buckets):
            content = b"".join(frames)
            file.write(content)
            row[bucket] = offset, len(content)
            offset += len(content)
            records[bucket // buckets_per_shard] += len(frames)
            sizes[bucket // buckets_per_shard] += len(content)
        extents.append(row)
    index, checksum = file.tell(), 0
    for content in _index_rows(extents, buckets):
        file.write(content)
        checksum = google_crc32c.extend(checksum, content)
    summary_start = file.tell()
    summary = {"statistics": statistics.as_json(), "records": records, "sizes": sizes}
    content = json.dumps(summary).encode()
    end, checksum = summary_start + len(content), google_crc32c.extend(checksum, content)
    footer = _FOOTER.pack(index, summary_start, end, len(extents), checksum, _MAGIC)
    file.write(content + _add_checksum(footer))
    return ChunkSummary(statistics, records, sizes)


def _index_rows(extents, buckets):
    """Yields the rows of the index, some at a time; extents are u8 [buckets, 2] of each pass."""
    for first in range(0, buckets, _ROWS):
        rows = np.concatenate([one[first : first + _ROWS] for one in extents], axis=1)
        yield b"".join(_add_checksum(row.tobytes()) for row in rows)


def _add_checksum(content):
    """Appends the checksum of bytes to them."""
    return content + _CHECKSUM.pack(google_crc32c.value(content))


def read_chunk_summary(path: str) -> ChunkSummary | None:
    """Reads the `ChunkSummary` from the file of a chunk; None if it is missing or incomplete."""
    try:
        with open(path, "rb") as file:
            footer = _read_footer(file)
            if footer is None:
                return None
            index, summary_start, end, _, checksum = footer
            content = os.pread(file.fileno(), end - index, index)
    except FileNotFoundError:
        return None
    if google_crc32c.value(content) != checksum:
        return None
    values = json.loads(content[summary_start - index :])
    statistics = CorpusStatistics.from_json(values["statistics"])
    return ChunkSummary(statistics, values["records"], values["sizes"])


def _read_footer(file):
    """Reads the footer without the file type; None if the file is incomplete."""
    size = os.fstat(file.fileno()).st_size
    length = _FOOTER.size + _CHECKSUM.size
    if size < length:
        return None
    content = os.pread(file.fileno(), length, size - length)
    *footer, magic = _FOOTER.unpack(content[: _FOOTER.size])
    # After a power failure, a file system may have kept a file's name without its contents.
    is_complete = content == _add_checksum(content[: _FOOTER.size]) and footer[2] == size - length
    return footer if is_complete and magic == _MAGIC else None


def read_bucket(path: str, bucket: int) -> Iterator[bytes]:
    """Yields the framed records of one bucket of a chunk file, pass by pass, as bytes.

    Buckets are numbered across all shards. An incomplete file or damaged index is an `InputError`.
    """
    with open(path, "rb", buffering=0) as file:
        footer = _read_footer(file)
        if footer is None:
            raise InputError(f"{path} must be complete. Received: a truncated file; delete it")
        index, _, _, passes, _ = footer
        width = _EXTENT.size * passes + _CHECKSUM.size
        row = os.pread(file.fileno(), width, index + bucket * width)
        extents = row[: -_CHECKSUM.size]
        if row != _add_checksum(extents):
            raise InputError(
                f"{path} must be unchanged. Received: a damaged index; delete it and start again"
            )
        for offset, size in _EXTENT.iter_unpack(extents):
            if size:
                yield os.pread(file.fileno(), size, offset)
