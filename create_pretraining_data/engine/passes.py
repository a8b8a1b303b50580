"""Runs the two passes: chunks into files, these into shards.

What a worker does depends on the plan and on a number, so the result does not depend on how many
workers there are, nor on which of them does what.
"""

from bert_common.errors import InputError
from bert_common.progress import progress
from create_pretraining_data.engine.intermediate_file import read_summary, write_chunk_file
from create_pretraining_data.engine.other_documents import read_other_documents
from create_pretraining_data.engine.shards import finished_shard, make_shard
from create_pretraining_data.engine.splitting import read_chunk
from create_pretraining_data.engine.work_plan import seed_of
from create_pretraining_data.instances.make_instances import ChunkStatistics, make_chunk
from create_pretraining_data.instances.sentences import split_documents


def make_chunk_file(plan, tokenizer, number):
    """A task of pass 1: makes the file of one chunk; returns its `Summary`."""
    documents = read_chunk(plan.chunks[number], plan.input_format)
    if plan.split_sentences:
        documents = split_documents(documents)
    seed = seed_of("chunk", plan.seed, number)
    path = plan.chunk_file(number)
    write_chunk_file(
        path,
        make_chunk(
            documents, tokenizer, plan.settings, seed, lambda: read_other_documents(plan, number)
        ),
        len(plan.output_files),
        plan.buckets_per_shard,
        seed_of("first bucket", plan.seed, number),
    )
    return read_summary(path)


def make_shard_file(plan, tokenizer, shard):
    """A task of pass 2: makes one shard."""
    make_shard(plan, shard)


def make_chunks(plan, run, numbers, look):
    """Pass 1: makes those of the chunks that are not there yet.

    Args:
        plan: a `WorkPlan`.
        run: what `start_workers` yields.
        numbers: the chunks of this process.
        look: is called with the `ChunkStatistics` of the first chunk that is made.
    """
    there = plan.files_there()
    missing = [
        n
        for n in numbers
        if plan.chunk_file(n) not in there or read_summary(plan.chunk_file(n)) is None
    ]
    sizes = {number: plan.chunk_size(number) for number in numbers}
    total = sum(sizes.values())
    made = total - sum(sizes[n] for n in missing)
    with progress("making examples", total, "B", done=made) as bar:
        for done, (number, summary) in enumerate(run(make_chunk_file, missing)):
            bar.update(sizes[number])
            if done == 0:
                look(summary.statistics)


def read_summaries(plan):
    """What all chunks are about.

    Args:
        plan: a `WorkPlan`.

    Returns:
        `ChunkStatistics` of all, for each shard (records, bytes); or None while chunks are
        missing.
    """
    statistics = ChunkStatistics()
    records = [0] * len(plan.output_files)
    sizes = [0] * len(plan.output_files)
    for number in range(len(plan.chunks)):
        summary = read_summary(plan.chunk_file(number))
        if summary is None:
            return None
        statistics += summary.statistics
        records = [a + b for a, b in zip(records, summary.records, strict=True)]
        sizes = [a + b for a, b in zip(sizes, summary.sizes, strict=True)]
    return statistics, list(zip(records, sizes, strict=True))


def make_shards(plan, run, expected):
    """Pass 2: makes those of the shards that are not there yet.

    Args:
        plan: a `WorkPlan`.
        run: what `start_workers` yields.
        expected: for each shard (records, bytes), as `read_summaries` returns them.

    Returns:
        For each shard a dict of its records and its bytes.

    Raises:
        InputError: a shard does not hold what the chunks hold.
    """
    shards = range(len(plan.output_files))
    there = plan.files_there()
    missing = [
        shard
        for shard in shards
        if plan.shard_marker(shard) not in there or finished_shard(plan, shard) is None
    ]
    total = sum(size for _, size in expected)
    done = total - sum(expected[shard][1] for shard in missing)
    with progress("shuffling records", total, "B", done=done) as bar:
        for shard, _ in run(make_shard_file, missing):
            bar.update(expected[shard][1])
    made = [finished_shard(plan, shard) for shard in shards]
    for path, shard, (records, size) in zip(plan.output_files, made, expected, strict=True):
        if shard is None or shard["records"] != records:
            raise InputError(f"{path} must hold {records} records. Received: {shard}")
        if plan.compression == "none" and shard["size"] != size:
            raise InputError(f"{path} must have {size} bytes. Received: {shard['size']}")
    return made
