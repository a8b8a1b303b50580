"""Merges the chunk files into shards."""

import gzip
import os
import random
from pathlib import Path

from bert_common.atomic_write import atomic_write, write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.engine.chunk_file import read_bucket, summary_path
from create_pretraining_data.engine.work_plan import WorkPlan, derive_seed
from create_pretraining_data.records.tfrecord import split_frames

# zlib's compression level; higher levels take several times as long to gain a few percent.
COMPRESSION_LEVEL = 6


def make_shard_file(plan: WorkPlan, shard: int) -> None:
    """Writes a shard atomically, one shuffled bucket after another; a task of pass 2.

    All chunk files must exist.
    """
    path = plan.output_files[shard]
    with atomic_write(path) as raw:
        if plan.compression == "GZIP":
            # No file name and no time, so that equal records give equal bytes.
            with gzip.GzipFile("", "wb", COMPRESSION_LEVEL, raw, mtime=0) as file:
                records = _write_buckets(file, plan, shard)
        else:
            records = _write_buckets(raw, plan, shard)
        size = raw.tell()
    write_json(plan.shard_marker_path(shard), {"records": records, "size": size})


def _write_buckets(file, plan, shard):
    """Writes the frames of a shard's buckets and returns their number."""
    records = 0
    first = shard * plan.buckets_per_shard
    for bucket in range(first, first + plan.buckets_per_shard):
        frames = _read_whole_bucket(plan, bucket)
        random.Random(derive_seed("bucket", plan.seed, bucket)).shuffle(frames)
        file.writelines(frames)
        records += len(frames)
    return records


def _read_whole_bucket(plan, bucket):
    """Reads the frames of a bucket from the files of all chunks."""
    frames = []
    for chunk in range(len(plan.chunks)):
        path = plan.chunk_path(chunk)
        for part in read_bucket(path, bucket, plan.settings.dupe_factor):
            try:
                frames += [part[start:end] for start, end in split_frames(part)]
            except ValueError as error:
                raise InputError(
                    f"{path} must be unchanged. Received: {error}; delete {summary_path(path)} "
                    "and start again"
                ) from None
    return frames


def find_unfinished_shards(plan: WorkPlan) -> list[int]:
    """Lists the numbers of the shards that are missing or were replaced."""
    existing = plan.existing_files()
    return [
        shard
        for shard in range(len(plan.output_files))
        if plan.shard_marker_path(shard) not in existing or not _is_whole(plan, shard)
    ]


def read_shard_marker(plan: WorkPlan, shard: int) -> dict[str, int]:
    """Reads the number of "records" of a finished shard and its "size" in bytes."""
    return parse_json(Path(plan.shard_marker_path(shard)).read_bytes())


def _is_whole(plan, shard):
    path = plan.output_files[shard]
    return os.path.exists(path) and os.path.getsize(path) == read_shard_marker(plan, shard)["size"]
