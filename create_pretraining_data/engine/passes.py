"""Runs the two passes over the data: text chunks to chunk files, then chunk files to shards.

A task depends only on the plan and its number, so the result depends neither on the number of
workers nor on the assignment of tasks to them.
"""

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from bert_common.process_pool import Run
from bert_common.progress import progress
from create_pretraining_data.engine.chunk_file import (
    ChunkSummary,
    read_chunk_summary,
    summary_path,
    write_chunk_file,
)
from create_pretraining_data.engine.repeats import read_kept_text
from create_pretraining_data.engine.shards import (
    find_unfinished_shards,
    make_shard_file,
    read_shard_marker,
)
from create_pretraining_data.engine.splitting import take_text
from create_pretraining_data.engine.work_plan import WorkPlan, derive_seed
from create_pretraining_data.instances.coverage import NO_TEXT, REPEATED
from create_pretraining_data.instances.make_instances import CorpusStatistics, make_records
from create_pretraining_data.instances.sentences import split_documents


def make_chunk_file(plan: WorkPlan, number: int) -> ChunkSummary:
    """Creates the files of one chunk and returns its `ChunkSummary`; a task of pass 1."""
    documents, dropped = read_kept_text(plan, number)
    documents = list(filter(None, documents))
    if plan.split_sentences:
        documents = split_documents(documents)
    seed = derive_seed("chunk", plan.seed, number)
    read_others = functools.partial(read_other_documents, plan, number)
    statistics = CorpusStatistics(repeated_lines=dropped.lines)
    statistics.left_out.update({REPEATED: dropped.documents, NO_TEXT: dropped.without_text})
    passes = make_records(documents, plan.tokenizer, plan.settings, seed, statistics, read_others)
    first = derive_seed("first bucket", plan.seed, number)
    path, shards = plan.chunk_path(number), len(plan.output_files)
    return write_chunk_file(path, passes, statistics, shards, plan.buckets_per_shard, first)


def make_chunk_files(
    plan: WorkPlan,
    run: Run,
    numbers: Sequence[int],
    inspect_first: Callable[[CorpusStatistics], Any],
) -> None:
    """Runs pass 1: creates the chunk files of this process that do not exist yet.

    `run` is yielded by `start_workers`; `inspect_first` is called with the `CorpusStatistics` of
    the first new chunk.
    """
    existing = plan.existing_files()
    missing = [n for n in numbers if summary_path(plan.chunk_path(n)) not in existing]
    sizes = {number: plan.chunk_size(number) for number in numbers}
    total = sum(sizes.values())
    done = total - sum(sizes[n] for n in missing)
    with progress("making examples", total, "B", done=done) as bar:
        for count, (number, summary) in enumerate(run(make_chunk_file, missing)):
            bar.update(sizes[number])
            if count == 0:
                inspect_first(summary.statistics)


def read_summaries(plan: WorkPlan) -> tuple[CorpusStatistics, list[tuple[int, int]]] | None:
    """Adds up the summaries of all chunks; returns None while chunks are missing.

    Returns:
        The `CorpusStatistics` of the whole text, and (records, bytes) for each shard.
    """
    paths = [plan.chunk_path(number) for number in range(len(plan.chunks))]
    if not plan.existing_files().issuperset(map(summary_path, paths)):
        return None
    statistics = CorpusStatistics()
    records = sizes = [0] * len(plan.output_files)
    for summary in map(read_chunk_summary, paths):
        statistics += summary.statistics
        records = [a + b for a, b in zip(records, summary.records, strict=True)]
        sizes = [a + b for a, b in zip(sizes, summary.sizes, strict=True)]
    return statistics, list(zip(records, sizes, strict=True))


def make_shard_files(
    plan: WorkPlan, run: Run, expected: Sequence[tuple[int, int]]
) -> list[dict[str, int]]:
    """Runs pass 2: creates the shards that do not exist yet.

    `expected` is from `read_summaries`.

    Returns:
        For each shard, its number of "records" and its "size" in bytes.
    """
    missing = find_unfinished_shards(plan)
    total = sum(size for _, size in expected)
    done = total - sum(expected[shard][1] for shard in missing)
    with progress("shuffling records", total, "B", done=done) as bar:
        for shard, _ in run(make_shard_file, missing):
            bar.update(expected[shard][1])
    return [read_shard_marker(plan, shard) for shard in range(len(plan.output_files))]


# The number of excerpts, each from a different chunk, and their length: some thousand sentences in
# total, which are tokenized much faster than a chunk.
EXCERPTS, EXCERPT_CHARACTERS = 8, 30_000


def read_other_documents(plan: WorkPlan, number: int) -> list[list[str]]:
    """Reads excerpts, lists of lines, from documents other than the one that a chunk is part of.

    Only one chunk is in memory at a time. The excerpts depend only on the plan and the number.
    """
    first = last = number  # the chunks that hold parts of the document
    while first in plan.continued:
        first -= 1
    while last + 1 in plan.continued:
        last += 1
    rng = random.Random(derive_seed("other documents", plan.seed, number))
    others = [k for k in range(len(plan.chunks)) if k != number and not first < k < last]
    rng.shuffle(others)
    excerpts = []
    for other in others:
        documents, _ = read_kept_text(plan, other)
        # The document's first and last chunks may also hold documents before and after it.
        ends_with_it, begins_with_it = first <= other < last, first < other <= last
        documents = documents[begins_with_it : len(documents) - ends_with_it]
        documents = list(filter(None, documents))
        if documents:
            excerpts.append(_cut_excerpt(documents, rng))
        if len(excerpts) == EXCERPTS:
            break
    documents = [document for excerpt in excerpts for document in excerpt]
    return split_documents(documents) if plan.split_sentences else documents


def _cut_excerpt(documents, rng):
    """Cuts an excerpt of `EXCERPT_CHARACTERS` from documents, starting at a random sentence."""
    first = rng.randrange(len(documents))
    start = rng.randrange(len(documents[first]))
    return take_text([documents[first][start:], *documents[first + 1 :]], EXCERPT_CHARACTERS)
