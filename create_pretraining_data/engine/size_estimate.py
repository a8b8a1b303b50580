"""Estimates the size of the records from a text sample and checks the free disk space."""

import dataclasses
import os
import shutil
import zlib
from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.progress import format_bytes
from create_pretraining_data.engine.chunk_file import chunk_files, index_size
from create_pretraining_data.engine.shards import COMPRESSION_LEVEL, find_unfinished_shards
from create_pretraining_data.engine.splitting import read_chunk_text, take_text
from create_pretraining_data.engine.work_plan import WorkPlan, derive_seed
from create_pretraining_data.instances.long_lines import split_at_punctuation
from create_pretraining_data.instances.make_instances import CorpusStatistics, make_records
from create_pretraining_data.records.tfrecord import FRAME

# The numbers of chunks and characters in the sample, which takes half a second to process.
CHUNKS, CHARACTERS = 8, 200_000

# The maximum passes over the sample; more give records of the same average size.
_PASSES = 4

# The bytes of the sample's records that are compressed to estimate the compression ratio.
_COMPRESSED = 2_000_000


class SizeEstimate(NamedTuple):
    """Holds the total size of the records in bytes."""

    records: int  # in the chunk files, between the passes
    files: int  # in the output files, which may be compressed


def estimate_records_size(plan: WorkPlan) -> SizeEstimate:
    """Estimates the size of the records, as if no repeats were left out.

    It determines the buckets and thereby the order of the records, so it depends only on the plan.
    """
    count = len(plan.chunks)
    numbers = sorted({k * count // CHUNKS for k in range(CHUNKS)}) if count else []
    sample, sampled_bytes = [], 0
    for number in numbers:
        documents = read_chunk_text(plan.chunks[number])
        part = take_text(documents, CHARACTERS // len(numbers))
        sample += part
        # Other file contents, such as JSON syntax, are assumed to be proportional to the text.
        share = _size(part) / max(1, _size(documents))
        sampled_bytes += share * plan.chunk_size(number)
    if not sampled_bytes:
        return SizeEstimate(0, 0)
    if plan.split_sentences:  # similar to the analyser, but much faster
        sample = [[s for line in d for s in split_at_punctuation(line)] for d in sample]
    passes = min(plan.settings.dupe_factor, _PASSES)
    settings = dataclasses.replace(plan.settings, dupe_factor=passes)
    seed = derive_seed("sample", plan.seed)
    made = make_records(sample, plan.tokenizer, settings, seed, CorpusStatistics())
    records = [record for of_pass in made for record in of_pass]
    total_bytes = sum(map(plan.chunk_size, range(count)))
    factor = plan.settings.dupe_factor / passes * total_bytes / sampled_bytes
    size = factor * sum(len(record) + FRAME for record in records)
    content = b"".join(records)[:_COMPRESSED]
    ratio = 1
    if plan.compression == "GZIP" and content:
        ratio = len(zlib.compress(content, COMPRESSION_LEVEL)) / len(content)
    return SizeEstimate(int(size), int(ratio * size))


def _size(documents):
    return sum(len(line) for document in documents for line in document)


def check_free_space(plan: WorkPlan, estimate: SizeEstimate) -> None:
    """Raises `InputError` if a disk that the plan writes to has too little free space.

    While the last shard is written, all records exist twice: in the chunk files and in the shards.
    The indices of the chunks are little beside the records, except of hundreds of gigabytes.
    Files of an earlier start are taken into account.
    """
    existing = plan.existing_files()
    paths = {path for k in range(len(plan.chunks)) for path in chunk_files(plan.chunk_path(k))}
    done = sum(map(os.path.getsize, paths & existing))
    needed: dict[int, float] = {}
    folders: dict[int, str] = {}

    def need(folder, size):
        device = os.stat(folder).st_dev
        needed[device] = needed.get(device, 0) + size
        folders.setdefault(device, folder)

    buckets = len(plan.output_files) * plan.buckets_per_shard
    indices = len(plan.chunks) * index_size(buckets, plan.settings.dupe_factor)
    need(plan.folder, max(0, estimate.records + indices - done))
    for shard in find_unfinished_shards(plan):
        folder = os.path.dirname(plan.output_files[shard]) or "."
        need(folder, estimate.files / len(plan.output_files))
    for device, size in needed.items():
        free = shutil.disk_usage(folders[device]).free
        if free < size:
            raise InputError(
                f"{folders[device]} must have room for about {format_bytes(size)}, for the records "
                f"and the intermediate files. Received: {format_bytes(free)} free"
            )
