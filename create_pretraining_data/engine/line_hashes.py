"""Declares the file of hashes of a chunk, which serve to find repeated text.

A line is hashed to 64 bits in Unicode's composed form (NFC), with single spaces and without
invisible characters; the hash of a document is computed from the hashes of its lines. The file is
u8 numbers: how many hashes there are of each kind, then for each kind the hashes, in ascending
order, and their counts in the chunk. A range of hashes is therefore one read, and a line that
repeats in every document takes little space.
"""

import hashlib
import os
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bert_common.atomic_write import atomic_write
from create_pretraining_data.engine.splitting import read_chunk_text
from create_pretraining_data.engine.work_plan import WorkPlan

# Lines of fewer characters may repeat without limit, such as "네, 알겠습니다." in a dialogue.
SHORTEST_LINE = 10

# The kinds of text that are counted, in the order of the file.
DOCUMENTS, LINES, SHORT_LINES = KINDS = ("documents", "lines", "short_lines")

# The type of all numbers in the file.
_NUMBER = np.dtype("<u8")


class HashedDocument(NamedTuple):
    """Holds the hashes of a document."""

    document: int
    lines: list[int]
    kinds: list[str | None]  # LINES or SHORT_LINES per line; None if it has no visible character


def hash_document(document: Iterable[str]) -> HashedDocument:
    """Hashes the lines of a document, and the document itself."""
    digests, kinds = [], []
    for line in document:
        text = " ".join(unicodedata.normalize("NFC", line).split())
        if not text.isprintable():
            text = "".join(filter(str.isprintable, text)).strip()
        digests.append(_digest(text.encode()))
        kinds.append((LINES if len(text) >= SHORTEST_LINE else SHORT_LINES) if text else None)
    return HashedDocument(_number(_digest(b"".join(digests))), [*map(_number, digests)], kinds)


def _digest(content):
    return hashlib.blake2b(content, digest_size=8).digest()


def _number(digest):
    return int.from_bytes(digest, "little")


def hashes_path(plan: WorkPlan, number: int) -> str:
    """Returns the path of the hash file of a chunk in a `WorkPlan`."""
    return os.path.join(plan.folder, f"hashes-{number:06d}")


def make_hash_file(plan: WorkPlan, number: int) -> None:
    """Writes the hashes of one chunk atomically; a task that precedes pass 1."""
    hashed = [hash_document(document) for document in read_chunk_text(plan.chunks[number])]
    values: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for one in hashed:
        if any(one.kinds):
            values[DOCUMENTS].append(one.document)
        for line, kind in zip(one.lines, one.kinds, strict=True):
            if kind:
                values[kind].append(line)
    counted = [np.unique(np.array(v, _NUMBER), return_counts=True) for v in values.values()]
    sizes = np.array([len(hashes) for hashes, _ in counted], _NUMBER)
    with atomic_write(hashes_path(plan, number)) as file:
        file.write(sizes.tobytes())
        for hashes, counts in counted:
            file.write(hashes.tobytes() + counts.astype(_NUMBER).tobytes())


def read_part(path: str, part: int, parts: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Reads the hashes that fall in one of `parts` equal ranges of all possible hashes.

    Returns:
        For each kind, (hashes in ascending order, their counts), two arrays of equal length.
    """
    low, high = (-(-k * 2**64 // parts) for k in (part, part + 1))  # rounded up
    found = []
    sizes, numbers = np.split(np.memmap(path, _NUMBER, "r"), [len(KINDS)])
    for size in sizes.tolist():
        hashes, counts, numbers = np.split(numbers, [size, 2 * size])
        first = np.searchsorted(hashes, np.uint64(low))
        last = np.searchsorted(hashes, np.uint64(high)) if high < 2**64 else size
        found.append((np.array(hashes[first:last]), np.array(counts[first:last])))
    return found
