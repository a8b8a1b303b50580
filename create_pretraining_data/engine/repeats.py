"""Finds documents and lines that occur more than once in the text, and leaves out the repeats.

The first occurrence, in the order of the input files, is not a repeat. The hashes of every chunk
are written to a file; then the hashes are compared range by range, so that memory does not grow
with the text.
"""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_common.atomic_write import atomic_write, write_json
from bert_common.json_text import parse_json
from bert_common.process_pool import Run
from bert_common.progress import progress
from create_pretraining_data.engine.line_hashes import (
    DOCUMENTS,
    KINDS,
    LINES,
    hash_document,
    hashes_path,
    make_hash_file,
    read_part,
)
from create_pretraining_data.engine.splitting import read_chunk
from create_pretraining_data.engine.work_folder import locked
from create_pretraining_data.engine.work_plan import WorkPlan

# The choices of what to leave out, and the kinds of hashes that each needs.
DROPPED_KINDS = {"none": (), "documents": (DOCUMENTS,), "lines": (DOCUMENTS, LINES)}

# The number of hashes to compare at a time, which take about 80 MB.
HASHES_OF_PART = 2_000_000

# How many of the most frequent documents and lines are kept for messages.
_MOST_FREQUENT = 3


class DroppedText(NamedTuple):
    """Counts what was left out of a chunk."""

    documents: int  # documents without any line left
    lines: int  # lines of all documents
    without_text: int  # JSON lines whose text is null


def read_kept_text(plan: WorkPlan, number: int) -> tuple[list[list[str]], DroppedText]:
    """Reads the documents of a chunk, and leaves out the repeats that the plan drops."""
    documents, without_text = read_chunk(plan.chunks[number])
    if plan.drop_duplicates == "none":
        return documents, DroppedText(0, 0, without_text)
    seen = _read_repeated(plan, number)
    kept = [_drop_seen(document, seen) for document in documents]
    counts = [sum(map(len, texts)) for texts in (documents, kept)]
    return kept, DroppedText(kept.count([]), counts[0] - counts[1], without_text)


def _drop_seen(document, seen):
    """Drops the text whose hashes are in `seen`, and adds the hashes of the kept text to it."""
    hashed = hash_document(document)
    if not any(hashed.kinds):  # no visible character
        return document
    if hashed.document in seen[DOCUMENTS]:
        return []
    seen[DOCUMENTS].add(hashed.document)
    if LINES not in seen:
        return document
    kept = []
    for line, value, kind in zip(document, hashed.lines, hashed.kinds, strict=True):
        if kind != LINES:
            kept.append(line)
        elif value not in seen[LINES]:
            seen[LINES].add(value)
            kept.append(line)
    return kept


def _read_repeated(plan, number):
    """Reads the hashes that a chunk shares with earlier chunks, as a set for each dropped kind."""
    parts = _read_json(_summary_path(plan))["parts"]
    found: dict[str, set[int]] = {kind: set() for kind in DROPPED_KINDS[plan.drop_duplicates]}
    for part in range(parts):
        content = np.memmap(_part_path(plan, part), "<u8", "r")
        for hashes in found.values():
            bounds, content = np.split(content, [len(plan.chunks) + 1])
            hashes.update(content[bounds[number] : bounds[number + 1]].tolist())
            content = content[bounds[-1] :]
    return found


def count_repeats(plan: WorkPlan, run: Run, numbers: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Counts the repeats of the whole text; with --drop_duplicates, also lists them by chunk.

    Work that an earlier start has finished is not repeated. Tasks on several machines share the
    work, but none waits for one that has not begun.

    Returns:
        For each of `KINDS`, a dict of "count" (of all), "distinct" and "most_frequent", a list of
        [count, hash, number of the first chunk that has it].
    """
    existing = _read_counts(plan)
    if existing is not None:
        return existing
    _make_hash_files(plan, run, numbers)
    with locked(plan.folder, "repeats", wait=True):
        existing = _read_counts(plan)
        if existing is not None:  # a different task did it
            return existing
        _make_hash_files(plan, run, range(len(plan.chunks)))
        width = 16  # bytes of a hash and its count
        hashes = sum(
            os.path.getsize(hashes_path(plan, n)) // width for n in range(len(plan.chunks))
        )
        parts = max(1, -(-hashes // HASHES_OF_PART))
        files = plan.existing_files()
        missing = [part for part in range(parts) if _part_counts_path(plan, part) not in files]
        with progress("comparing lines", parts, "parts", done=parts - len(missing)) as bar:
            for _ in run(functools.partial(find_repeats, parts=parts), missing):
                bar.update(1)
        counted = [_read_json(_part_counts_path(plan, part)) for part in range(parts)]
        result = {kind: _add_up([counts[kind] for counts in counted]) for kind in KINDS}
        write_json(_summary_path(plan), {"parts": parts, "kinds": result})
        for number in range(len(plan.chunks)):
            os.remove(hashes_path(plan, number))
    return result


def _make_hash_files(plan, run, numbers):
    existing = plan.existing_files()
    paths = {number: hashes_path(plan, number) for number in numbers}
    missing = [number for number, path in paths.items() if path not in existing]
    total = sum(map(plan.chunk_size, numbers))
    done = total - sum(map(plan.chunk_size, missing))
    if not missing:
        return
    with progress("looking for repeated lines", total, "B", done=done) as bar:
        for number, _ in run(make_hash_file, missing):
            bar.update(plan.chunk_size(number))


def find_repeats(plan: WorkPlan, part: int, parts: int) -> None:
    """Finds the repeats in one of `parts` ranges of hashes; a task that precedes pass 1.

    All hash files must exist.
    """
    chunks = range(len(plan.chunks))
    of_chunks = [read_part(hashes_path(plan, number), part, parts) for number in chunks]
    nothing = np.zeros(0, "<u8")
    counted, content = {}, b""
    for index, kind in enumerate(KINDS):
        hashes = np.concatenate([nothing, *(found[index][0] for found in of_chunks)])
        counts = np.concatenate([nothing, *(found[index][1] for found in of_chunks)])
        ends = np.cumsum([len(found[index][0]) for found in of_chunks], dtype=np.int64)
        order = np.argsort(hashes, kind="stable")  # equal hashes stay in the order of the chunks
        is_first = np.ones(len(hashes), bool)
        is_first[1:] = np.diff(hashes[order]) > 0
        firsts = np.flatnonzero(is_first)
        totals = np.add.reduceat(counts[order], firsts) if len(firsts) else counts
        most = np.argsort(totals, kind="stable")[::-1][:_MOST_FREQUENT]
        places = order[firsts[most]]
        counted[kind] = {
            "count": int(counts.sum()),
            "distinct": len(firsts),
            "most_frequent": [
                [int(totals[m]), int(hashes[place]), int(np.searchsorted(ends, place, "right"))]
                for m, place in zip(most, places, strict=True)
            ],
        }
        if kind in DROPPED_KINDS[plan.drop_duplicates]:
            repeats = np.sort(order[~is_first])  # by chunk
            bounds = np.searchsorted(repeats, [0, *ends])
            content += bounds.astype("<u8").tobytes() + hashes[repeats].astype("<u8").tobytes()
    with atomic_write(_part_path(plan, part)) as file:
        file.write(content)
    write_json(_part_counts_path(plan, part), counted)  # last: it marks the part as finished


def _part_path(plan, part):
    return os.path.join(plan.folder, f"repeats-{part:06d}")


def _part_counts_path(plan, part):
    return f"{_part_path(plan, part)}.json"


def _summary_path(plan):
    return os.path.join(plan.folder, "repeats.json")


def _read_counts(plan):
    """Reads the counts of an earlier start; None if it did not finish them."""
    is_there = _summary_path(plan) in plan.existing_files()
    return _read_json(_summary_path(plan))["kinds"] if is_there else None


def _read_json(path):
    return parse_json(Path(path).read_bytes())


def _add_up(counted):
    most = sorted(one for counts in counted for one in counts["most_frequent"])
    return {
        "count": sum(counts["count"] for counts in counted),
        "distinct": sum(counts["distinct"] for counts in counted),
        "most_frequent": most[::-1][:_MOST_FREQUENT],
    }
