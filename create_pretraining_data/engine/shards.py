"""Merges the chunk files into shards."""

import gzip
import os
import random

from bert_common.atomic_write import atomic_write, write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.engine.chunk_file import read_bucket
from create_pretraining_data.engine.work_plan import WorkPlan, derive_seed
from create_pretraining_data.records.tfrecord import split_frames
from tokenization.base import TokenizerInterface

# zlib's compression level; higher levels take several times as long to gain a few percent.
COMPRESSION_LEVEL = 6


def make_shard_file(plan: WorkPlan, tokenizer: TokenizerInterface, shard: int) -> None:
    """Writes a shard atomically, one shuffled bucket after another; a task of pass 2.

    All chunk files must exist. The tokenizer is not used; all tasks have the same parameters.
    """
    path = plan.output_files[shard]
    with atomic_write(path) as raw:
        if plan.compression == "GZIP":
            # No file name and no time, so that equal records give equal bytes.
            with gzip.GzipFile("", "wb", COMPRESSION_LEVEL, raw, mtime=0) as file:
                records = _write_buckets(file, plan, shard)
        else:
            records = _write_buckets(raw, plan, shard)
        raw.flush()
        os.fsync(raw.fileno())  # because the chunk files will be removed
        size = raw.tell()
    write_json(plan.shard_marker_path(shard), {"records": records, "size": size})


def _write_buckets(file, plan, shard):
    records = 0
    first = shard * plan.buckets_per_shard
    for bucket in range(first, first + plan.buckets_per_shard):
        content = bytearray()
        spans: list[tuple[int, int]] = []
        for chunk in range(len(plan.chunks)):
            path = plan.chunk_path(chunk)
            for part in read_bucket(path, bucket):
                try:
                    frames = split_frames(part)
                except ValueError as error:
                    raise InputError(
                        f"{path} must be unchanged. Received: {error}; delete it and start again"
                    ) from None
                spans += ((start + len(content), end + len(content)) for start, end in frames)
                content += part
        random.Random(derive_seed("bucket", plan.seed, bucket)).shuffle(spans)
        view = memoryview(content)
        for start, end in spans:
            file.write(view[start:end])
        records += len(spans)
    return records


def find_unfinished_shards(plan: WorkPlan) -> list[int]:
    """Lists the numbers of the shards that are missing or incomplete."""
    existing = plan.existing_files()
    return [
        shard
        for shard in range(len(plan.output_files))
        if plan.shard_marker_path(shard) not in existing or not read_finished_shard(plan, shard)
    ]


def read_finished_shard(plan: WorkPlan, shard: int) -> dict[str, int] | None:
    """Reads the record count and size of a shard; None if it is missing or incomplete."""
    try:
        with open(plan.shard_marker_path(shard), encoding="utf-8") as file:
            marker = parse_json(file.read())
        complete = os.path.getsize(plan.output_files[shard]) == marker["size"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # missing or damaged
        return None
    return marker if complete else None
