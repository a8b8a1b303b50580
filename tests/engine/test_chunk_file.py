"""The parts of the engine: a chunk's files, statistics, names."""

import os
import tracemalloc

from create_pretraining_data.engine.chunk_file import (
    chunk_files,
    index_path,
    index_size,
    read_bucket,
    read_chunk_summary,
    write_chunk_file,
)
from create_pretraining_data.engine.work_plan import derive_seed
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.records.tfrecord import split_frames


def made(passes, size=1000):
    """As `make_records` makes them, of records that contain their number."""
    for i in range(passes):
        yield [f"{i} {k}".encode().ljust(size) for k in range(100)]


def write(folder, passes, shards, buckets_per_shard, size=1000):
    """The path of a chunk's file."""
    path, statistics = str(folder / "chunk"), CorpusStatistics(documents=3, examples=100 * passes)
    write_chunk_file(path, made(passes, size), statistics, shards, buckets_per_shard, seed=5)
    return path


def test_a_chunks_file_holds_its_records_by_bucket(tmp_path):
    path = write(tmp_path, passes=3, shards=4, buckets_per_shard=2)
    found = []
    for bucket in range(8):
        content = b"".join(read_bucket(path, bucket, passes=3))
        found.append([content[a + 12 : b - 4].decode().strip() for a, b in split_frames(content)])
    assert sorted(sum(found, [])) == sorted(f"{i} {k}" for i in range(3) for k in range(100))
    assert {len(bucket) for bucket in found} <= {37, 38}
    summary = read_chunk_summary(path)
    assert summary.records == [75] * 4 and sum(summary.sizes) == 300 * 1016
    assert summary.statistics == CorpusStatistics(documents=3, examples=300)
    assert sorted(map(str, tmp_path.iterdir())) == sorted(chunk_files(path))


def peak(*arguments, **options):
    """The most memory that writing a chunk takes, and its path."""
    tracemalloc.start()
    path = write(*arguments, **options)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most, path


def test_memory_does_not_grow_with_the_passes(tmp_path):
    assert peak(tmp_path, 30, 4, 2)[0] < 1.3 * peak(tmp_path, 3, 4, 2)[0]


def test_memory_grows_little_with_the_buckets_of_much_text(tmp_path):
    """200 GB of text make 65,000 buckets of ten passes, or 190,000 of forty."""
    most, path = peak(tmp_path, 10, 64, 100, size=10)
    index = index_size(6400, passes=10)
    assert index == 6400 * 10 * 16 and most < 4 * index
    assert os.path.getsize(index_path(path)) == index
    assert os.path.getsize(path) == 10 * 100 * (10 + 16)


def test_seeds_differ_by_chunk():
    assert derive_seed("a", 1) == derive_seed("a", 1) != derive_seed("a", 2)
