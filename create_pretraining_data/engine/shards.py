"""Makes one shard out of the files of all chunks."""

import gzip
import os
import random

from bert_common.atomic_write import atomic_write, write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.engine.intermediate_file import read_bucket
from create_pretraining_data.engine.work_plan import seed_of
from create_pretraining_data.records.tfrecord import split

# Of zlib; a higher level takes several times as long for a few percent.
_LEVEL = 6


def make_shard(plan, shard):
    """Writes a shard bucket after bucket, each shuffled; it is there once it is whole.

    Args:
        plan: a `WorkPlan` whose chunk files are all there.
        shard: its number.

    Raises:
        InputError: the shard cannot be written, or a chunk's file is damaged.
    """
    path = plan.output_files[shard]
    with atomic_write(path) as raw:
        if plan.compression == "GZIP":
            # Without name and time, so that the same records are the same bytes.
            with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as file:
                records = _write_buckets(file, plan, shard)
        else:
            records = _write_buckets(raw, plan, shard)
        raw.flush()
        os.fsync(raw.fileno())  # the chunk files will be removed on the strength of it
        size = raw.tell()
    write_json(plan.shard_marker(shard), {"records": records, "size": size})


def _write_buckets(file, plan, shard):
    records = 0
    first = shard * plan.buckets_per_shard
    for bucket in range(first, first + plan.buckets_per_shard):
        content, spans = bytearray(), []
        for chunk in range(len(plan.chunks)):
            path = plan.chunk_file(chunk)
            for part in read_bucket(path, bucket):
                try:
                    found = split(part)
                except ValueError as error:
                    raise InputError(
                        f"{path} must be as it was written. Received: {error}; delete it and "
                        "start again"
                    ) from None
                spans += ((start + len(content), end + len(content)) for start, end in found)
                content += part
        random.Random(seed_of("bucket", plan.seed, bucket)).shuffle(spans)
        view = memoryview(content)
        for start, end in spans:
            file.write(view[start:end])
        records += len(spans)
    return records


def finished_shard(plan, shard):
    """The shard's records and bytes, or None if it has yet to be made."""
    try:
        with open(plan.shard_marker(shard), encoding="utf-8") as file:
            made = parse_json(file.read())
        whole = os.path.getsize(plan.output_files[shard]) == made["size"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # not there, or damaged
        return None
    return made if whole else None
