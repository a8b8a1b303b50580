"""Declares the file of hashes of a chunk, which serve to find repeated text.

A line is hashed to 64 bits in Unicode's composed form (NFC), with single spaces and without
invisible characters; the hash of a document is computed from the hashes of its lines. The file has
each hash once, in ascending order, with its count in the chunk. A range of hashes is therefore one
read, and a line that repeats in every document takes little space.
"""

import hashlib
import os
import struct
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import google_crc32c
import numpy as np

from bert_common.atomic_write import atomic_write
from create_pretraining_data.engine.splitting import read_chunk_text
from create_pretraining_data.engine.work_plan import WorkPlan
from tokenization.base import TokenizerInterface

# Lines of fewer characters may repeat without limit, such as "네, 알겠습니다." in a dialogue.
SHORTEST_LINE = 10

# The kinds of text that are counted, in the order of the file.
DOCUMENTS, LINES, SHORT_LINES = KINDS = ("documents", "lines", "short_lines")

# The hashes and counts are followed by the number of hashes of each kind and the file type, then by
# the checksum of the whole file.
_FOOTER = struct.Struct("<3Q8s")
_CHECKSUM = struct.Struct("<I")
_MAGIC = b"hashes02"
_HASH, _COUNT = np.dtype("<u8"), np.dtype("<u4")


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


def make_hash_file(plan: WorkPlan, tokenizer: TokenizerInterface, number: int) -> None:
    """Writes the hashes of one chunk atomically; a task that precedes pass 1.

    The tokenizer is not used; all tasks have the same parameters.
    """
    hashed = [hash_document(document) for document in read_chunk_text(plan.chunks[number])]
    values: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for one in hashed:
        if any(one.kinds):
            values[DOCUMENTS].append(one.document)
        for line, kind in zip(one.lines, one.kinds, strict=True):
            if kind:
                values[kind].append(line)
    counted = [np.unique(np.array(v, _HASH), return_counts=True) for v in values.values()]
    content = b"".join(
        hashes.tobytes() + counts.astype(_COUNT).tobytes() for hashes, counts in counted
    )
    content += _FOOTER.pack(*(len(hashes) for hashes, _ in counted), _MAGIC)
    with atomic_write(hashes_path(plan, number)) as file:
        file.write(content + _CHECKSUM.pack(google_crc32c.value(content)))


def is_complete(path: str) -> bool:
    """Returns True if a hash file exists and is undamaged."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return False
    content, checksum = content[: -_CHECKSUM.size], content[-_CHECKSUM.size :]
    return content.endswith(_MAGIC) and checksum == _CHECKSUM.pack(google_crc32c.value(content))


def read_part(path: str, part: int, parts: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Reads the hashes that fall in one of `parts` equal ranges of all possible hashes.

    Returns:
        For each kind, (hashes in ascending order, their counts), two arrays of equal length.
    """
    low, high = (-(-k * 2**64 // parts) for k in (part, part + 1))  # rounded up
    found = []
    content = np.memmap(path, np.uint8, "r")
    end = len(content) - _FOOTER.size - _CHECKSUM.size
    *sizes, _ = _FOOTER.unpack(content[end : -_CHECKSUM.size].tobytes())
    start = 0
    for size in sizes:
        middle = start + _HASH.itemsize * size
        stop = middle + _COUNT.itemsize * size
        hashes, counts = content[start:middle].view(_HASH), content[middle:stop].view(_COUNT)
        first = np.searchsorted(hashes, np.uint64(low))
        last = np.searchsorted(hashes, np.uint64(high)) if high < 2**64 else size
        found.append((np.array(hashes[first:last]), np.array(counts[first:last])))
        start = stop
    return found
