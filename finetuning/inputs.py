"""Reads sentences or pairs of them, one a line, and makes them the encoder's input.

Legend: T pieces of a row, [CLS] and [SEP] among them.
"""

import re
from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.progress import progress
from create_pretraining_data.instances.pairs import truncated_lengths
from tokenization.vocabulary import read_bytes

# As google-research/bert extract_features.py: the last " ||| " of a line parts two sentences.
_PAIR = re.compile(r"(.*) \|\|\| (.*)")

# Texts that are cut into pieces at a time.
ENCODED_TOGETHER = 2000

# Examples from which a tokenizer's graph form pays: it is built in about 8 s on one core, in which
# as many sentences of film reviews are cut without it.
GRAPH_FROM = 200_000

# [CLS] A [SEP] B [SEP]: with fewer places a pair has none for its own pieces.
SHORTEST = 3


class Row(NamedTuple):
    """A sentence, or a pair, as pieces."""

    ids: np.ndarray  # [T] int32
    segment_ids: np.ndarray  # [T] int32: 0 up to the first [SEP], then 1


def read_lines(path):
    """Reads sentences as google-research/bert extract_features.py does, blank lines included.

    Args:
        path: a UTF-8 file; only "\\n" ends a line.

    Returns:
        A list of (sentence, second sentence or None).

    Raises:
        InputError: the file is missing, empty or not UTF-8; the last names the line.
    """
    pairs = []
    lines = read_bytes(path).split(b"\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise InputError(
                f"text must be UTF-8. Received: {path} line {number}: "
                f"byte 0x{line[error.start]:02x}"
            ) from None
        match = _PAIR.fullmatch(text)
        pairs.append(match.groups() if match else (text, None))
    return pairs


def encode_pairs(tokenizer, pairs, max_length):
    """`encode_pair` of many; of very many by the tokenizer's graph form where it has one.

    Args:
        tokenizer: a tokenizer that has [CLS] and [SEP].
        pairs: a list of (sentence, second sentence or None).
        max_length: the largest length of a row, at least 3.

    Returns:
        A list of `Row`s.
    """
    rows, graph = [], len(pairs) >= GRAPH_FROM
    with progress("encoding", len(pairs), "examples") as bar:
        for start in range(0, len(pairs), ENCODED_TOGETHER):
            part = pairs[start : start + ENCODED_TOGETHER]
            firsts = _encode([text for text, _ in part], tokenizer, graph)
            others = _encode([second or "" for _, second in part], tokenizer, graph)
            rows += [
                _join(tokenizer, first, other, max_length)
                for first, other in zip(firsts, others, strict=True)
            ]
            bar.update(len(part))
    return rows


def _encode(texts, tokenizer, graph):
    """The ids of each text, [(pieces)] int32."""
    try:
        ids = tokenizer.encode_batch(texts) if graph else None
    except InputError:  # no graph form
        ids = None
    if ids is None:
        return [np.array(tokenizer.encode(text), np.int32) for text in texts]
    return np.split(ids.values.numpy(), ids.row_splits.numpy()[1:-1])


def encode_pair(tokenizer, text, second, max_length):
    """[CLS] A [SEP], or [CLS] A [SEP] B [SEP], cut as google-research/bert cuts.

    Of a pair that is too long the longer sentence loses its last piece, again and again.

    Args:
        tokenizer: a tokenizer that has [CLS] and [SEP].
        text: a sentence.
        second: another one, or None.
        max_length: the largest T, at least 3.

    Returns:
        A `Row`.
    """
    first, other = tokenizer.encode(text), tokenizer.encode(second) if second else []
    return _join(tokenizer, first, other, max_length)


def _join(tokenizer, first, other, max_length):
    room = max_length - (3 if len(other) else 2)
    kept, kept_other = truncated_lengths(len(first), len(other), room)
    first = [tokenizer.cls_id, *first[:kept], tokenizer.sep_id]
    other = [*other[:kept_other], tokenizer.sep_id] if kept_other else []
    segment_ids = np.repeat(np.array([0, 1], np.int32), [len(first), len(other)])
    return Row(np.array(first + other, np.int32), segment_ids)


def pad_rows(rows, length, pad_id):
    """A batch of rows.

    Args:
        rows: `Row`s, B of them.
        length: of the batch, no shorter than the longest row.
        pad_id: fills the places after a row.

    Returns:
        A dict of int32 arrays [B, length]: input_ids, input_mask, segment_ids.
    """
    batch = {
        "input_ids": np.full((len(rows), length), pad_id, np.int32),
        "input_mask": np.zeros((len(rows), length), np.int32),
        "segment_ids": np.zeros((len(rows), length), np.int32),
    }
    for number, row in enumerate(rows):
        batch["input_ids"][number, : len(row.ids)] = row.ids
        batch["input_mask"][number, : len(row.ids)] = 1
        batch["segment_ids"][number, : len(row.ids)] = row.segment_ids
    return batch
