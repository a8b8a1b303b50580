"""Merges the chunk files into shards."""

import array
import contextlib
import gzip
import mmap
import os
import random
import tempfile

from bert_common.atomic_write import atomic_write, write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.engine.chunk_file import read_bucket, summary_path
from create_pretraining_data.engine.work_plan import BUCKET_BYTES, WorkPlan, derive_seed
from create_pretraining_data.records.tfrecord import split_frames

# zlib's compression level; higher levels take several times as long to gain a few percent.
COMPRESSION_LEVEL = 6

# The maximum bytes of a bucket to shuffle in memory. Buckets of short texts, whose rows are mostly
# padding, may be thirty times as large as `BUCKET_BYTES`.
IN_MEMORY = 2 * BUCKET_BYTES


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
    records = 0
    first = shard * plan.buckets_per_shard
    with tempfile.TemporaryFile(dir=plan.folder) as space:
        for bucket in range(first, first + plan.buckets_per_shard):
            with _read_whole_bucket(plan, bucket, space) as (content, ends):
                order = array.array("Q", range(len(ends)))
                random.Random(derive_seed("bucket", plan.seed, bucket)).shuffle(order)
                for number in order:
                    start = ends[number - 1] if number else 0
                    file.write(content[start : ends[number]])
            records += len(ends)
    return records


@contextlib.contextmanager
def _read_whole_bucket(plan, bucket, space):
    """Yields the frames of a bucket, as bytes that can be sliced, and where each frame ends.

    If they are more than `IN_MEMORY`, they are in the file `space`.
    """
    content, ends = bytearray(), array.array("Q")
    space.seek(0)
    space.truncate()
    for chunk in range(len(plan.chunks)):
        path = plan.chunk_path(chunk)
        for part in read_bucket(path, bucket, plan.settings.dupe_factor):
            try:
                frames = split_frames(part)
            except ValueError as error:
                raise InputError(
                    f"{path} must be unchanged. Received: {error}; delete {summary_path(path)} "
                    "and start again"
                ) from None
            before = space.tell() + len(content)
            ends.extend(before + end for _, end in frames)
            content += part
            if len(content) > IN_MEMORY:
                space.write(content)
                content.clear()
    if not space.tell():
        yield memoryview(content), ends
        return
    space.write(content)
    space.flush()
    # The system can drop the pages of a file if memory is short.
    with mmap.mmap(space.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield mapped, ends


def find_unfinished_shards(plan: WorkPlan) -> list[int]:
    """Lists the numbers of the shards that are missing or incomplete."""
    existing = plan.existing_files()
    return [
        shard
        for shard in range(len(plan.output_files))
        if plan.shard_marker_path(shard) not in existing or not read_finished_shard(plan, shard)
    ]


def read_finished_shard(plan: WorkPlan, shard: int) -> dict[str, int] | None:
    """Reads the record count and size of a shard; None if it is missing or was replaced."""
    try:
        with open(plan.shard_marker_path(shard), encoding="utf-8") as file:
            marker = parse_json(file.read())
        is_whole = os.path.getsize(plan.output_files[shard]) == marker["size"]
    except FileNotFoundError:
        return None
    return marker if is_whole else None
