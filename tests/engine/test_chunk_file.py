"""The parts of the engine: a chunk's file, statistics, names."""

import collections
import json
import tracemalloc

import pytest

from bert_common.errors import InputError
from create_pretraining_data.engine.chunk_file import (
    index_size,
    read_bucket,
    read_chunk_summary,
    write_chunk_file,
)
from create_pretraining_data.engine.work_plan import derive_seed
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.records.metadata import sidecar_path
from create_pretraining_data.records.shard_names import expand_output_file, without_shard
from create_pretraining_data.records.tfrecord import split_frames


def made(passes, size=1000):
    """As `make_records` makes them, of records that contain their number."""
    for i in range(passes):
        yield [f"{i} {k}".encode().ljust(size) for k in range(100)]
    return CorpusStatistics(documents=3, examples=100 * passes)


def test_a_chunks_file_holds_its_records_by_bucket(tmp_path):
    path = str(tmp_path / "chunk")
    write_chunk_file(path, made(3), shards=4, buckets_per_shard=2, seed=5)
    found = []
    for bucket in range(8):
        content = b"".join(read_bucket(path, bucket))
        found.append([content[a + 12 : b - 4].decode().strip() for a, b in split_frames(content)])
    assert sorted(sum(found, [])) == sorted(f"{i} {k}" for i in range(3) for k in range(100))
    assert {len(bucket) for bucket in found} <= {37, 38}
    summary = read_chunk_summary(path)
    assert summary.records == [75] * 4 and sum(summary.sizes) == 300 * 1016
    assert summary.statistics == CorpusStatistics(documents=3, examples=300)
    whole = (tmp_path / "chunk").read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], b""):
        (tmp_path / "chunk").write_bytes(damaged)
        assert read_chunk_summary(path) is None
        with pytest.raises(InputError, match="must be complete"):
            list(read_bucket(path, 0))
    assert read_chunk_summary(str(tmp_path / "gone")) is None


def test_a_flipped_bit_is_noticed_wherever_it_is(tmp_path):
    path = tmp_path / "chunk"
    write_chunk_file(str(path), made(2, size=30), shards=2, buckets_per_shard=2, seed=5)
    whole = path.read_bytes()
    wanted = [b"".join(read_bucket(str(path), bucket)) for bucket in range(4)]
    records = sum(map(len, wanted))
    for place in [*range(0, records, 97), *range(records, len(whole))]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        # It is made again, unless it is the records, which are read in the second pass only.
        assert (read_chunk_summary(str(path)) is None) == (place >= records), place
        found = []
        for bucket in range(4):
            try:
                content = b"".join(read_bucket(str(path), bucket))
                split_frames(content)
                found.append(content)
            except (InputError, ValueError):
                found.append(None)
        assert all(a in (b, None) for a, b in zip(found, wanted, strict=True)), place
        # The summary of a chunk is not needed for its records.
        assert (None in found) or place >= records


def test_memory_does_not_grow_with_the_passes(tmp_path):
    def peak(passes):
        tracemalloc.start()
        write_chunk_file(str(tmp_path / "chunk"), made(passes), 4, 2, 5)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(30) < 1.3 * peak(3)


def test_memory_grows_little_with_the_buckets_of_much_text(tmp_path):
    """200 GB of text make 65,000 buckets of ten passes, or 190,000 of forty."""
    tracemalloc.start()
    write_chunk_file(str(tmp_path / "chunk"), made(10, size=10), 64, 100, 5)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    index = index_size(6400, passes=10)
    assert index == 6400 * (10 * 16 + 4) and most < 4 * index
    records = 10 * 100 * (10 + 16)
    assert 0 < (tmp_path / "chunk").stat().st_size - index - records < 2000  # the summary


def test_statistics_add_up():
    one = CorpusStatistics(1, 0, 2, lengths=collections.Counter({5: 1}))
    two = CorpusStatistics(2, 1, 3, lengths=collections.Counter({5: 1, 7: 2}))
    both = one + two
    assert (both.documents, both.sentences, both.lengths) == (3, 5, {5: 2, 7: 2})
    assert CorpusStatistics.from_json(json.loads(json.dumps(both.as_json()))) == both


def test_names():
    files = expand_output_file("dir/ko.tfrecord@64")
    assert files[0] == "dir/ko-00000-of-00064.tfrecord" and len(files) == 64
    assert expand_output_file("a@b") == ["a@b"]
    assert expand_output_file("a@2") == ["a-00000-of-00002", "a-00001-of-00002"]
    assert {sidecar_path(path) for path in files} == {"dir/ko.json"}
    assert without_shard(files[3]) == "dir/ko.tfrecord"
    assert sidecar_path("ko.tfrecord") == "ko.json"
    for bad in ("a@0", "a@100000"):
        with pytest.raises(InputError, match="from 1 to 99999"):
            expand_output_file(bad)
    assert derive_seed("a", 1) != derive_seed("a", 2) and derive_seed("a", 1) == derive_seed("a", 1)
