"""Turns sentences, pairs of sentences and questions about texts into the encoder's input.

Shapes: B rows of a batch, T tokens of a row, [CLS] and [SEP] included.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.progress import progress
from bert_common.text_encoding import decode_text
from create_pretraining_data.instances.pairs import truncated_lengths
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from finetuning.readers import Example

# As in google-research/bert extract_features.py, the last " ||| " of a line separates sentences.
_PAIR = re.compile(r"(.*) \|\|\| (.*)")

# Texts tokenized per call.
TEXTS_PER_CALL = 2000

# From this many examples on, a tokenizer's graph form pays off: building it takes about 8 s on one
# core, the time in which this many sentences of film reviews are tokenized without it.
GRAPH_FROM = 200_000

# [CLS] A [SEP] B [SEP]: a shorter row has no room for a piece of a pair.
SHORTEST = 3

# A sentence, and the second sentence of a pair or None.
Pair = tuple[str, str | None]

# The arrays of a batch by their names.
Batch = dict[str, np.ndarray]

# The encoder's inputs, to which `pad_rows` pads rows.
ROW_INPUTS = ("input_ids", "input_mask", "segment_ids")


class InputRow(NamedTuple):
    """The token ids of a sentence or a sentence pair."""

    ids: np.ndarray  # [T] int32
    segment_ids: np.ndarray  # [T] int32: 0 up to the first [SEP], then 1


def read_pairs(path: str) -> list[Pair]:
    """Reads a sentence or a pair per line, as google-research/bert extract_features.py does.

    Blank lines count as empty sentences. The file is in UTF-8 or another recognized encoding; only
    "\\n" ends a line.
    """
    pairs = []
    lines = decode_text(read_bytes(path), path).split("\n")
    if lines == [""]:  # the file holds only a byte order mark
        raise InputError(f"{path} must hold a line. Received: none")
    for line in lines if lines[-1] else lines[:-1]:
        text = line.strip()
        match = _PAIR.fullmatch(text)
        pairs.append((match[1], match[2]) if match else (text, None))
    return pairs


def encode_pairs(
    tokenizer: TokenizerInterface, pairs: Sequence[Pair], max_length: int
) -> list[InputRow]:
    """Encodes pairs like `encode_pair`; very many with the tokenizer's graph form, if any."""
    rows, graph = [], len(pairs) >= GRAPH_FROM
    with progress("encoding", len(pairs), "examples") as bar:
        for start in range(0, len(pairs), TEXTS_PER_CALL):
            part = pairs[start : start + TEXTS_PER_CALL]
            firsts = _encode([text for text, _ in part], tokenizer, graph)
            others = _encode([second or "" for _, second in part], tokenizer, graph)
            rows += [
                _join(tokenizer, first, other, max_length)
                for first, other in zip(firsts, others, strict=True)
            ]
            bar.update(len(part))
    return rows


def _encode(texts, tokenizer, graph):
    """Returns the token ids of each text, a list of int32 arrays."""
    try:
        ids = tokenizer.encode_batch(texts) if graph else None
    except InputError:  # no graph form
        ids = None
    if ids is None:
        return [np.array(tokenizer.encode(text), np.int32) for text in texts]
    return np.split(ids.values.numpy(), ids.row_splits.numpy()[1:-1])


def encode_pair(
    tokenizer: TokenizerInterface, text: str, second: str | None, max_length: int
) -> InputRow:
    """Makes an `InputRow`: [CLS] A [SEP] or [CLS] A [SEP] B [SEP].

    While a pair is too long, its longer sentence loses its last token, as in google-research/bert.
    """
    first, other = tokenizer.encode(text), tokenizer.encode(second) if second else []
    return _join(tokenizer, first, other, max_length)


def encode_around(tokenizer: TokenizerInterface, example: "Example", max_length: int) -> InputRow:
    """Makes an `InputRow` of a text; drops the tokens farthest from its parts `example.kept`.

    Raises an `InputError` if these parts have more tokens than a row.
    """
    ids, spans = tokenizer.encode_with_offsets(example.text)
    kept = [
        index
        for index, (start, end) in enumerate(spans)
        if any(start < last and end > first for first, last in example.kept)
    ]
    room = max_length - 2
    if len(kept) > room:
        raise InputError(
            f"--max_seq_length must leave room for both entities of every example. Received: "
            f"--max_seq_length={max_length}, {len(kept) + 2} tokens in {example.id}"
        )
    if len(ids) > room:
        distances = np.abs(np.arange(len(ids))[:, None] - kept).min(axis=1)  # [pieces]
        nearest = np.argsort(distances, kind="stable")[:room]
        ids = [ids[index] for index in np.sort(nearest)]
    return _join(tokenizer, ids, [], max_length)


def _join(tokenizer, first, other, max_length):
    room = max_length - (3 if len(other) else 2)
    kept, kept_other = truncated_lengths(len(first), len(other), room)
    first = [tokenizer.cls_id, *first[:kept], tokenizer.sep_id]
    other = [*other[:kept_other], tokenizer.sep_id] if kept_other else []
    segment_ids = np.repeat(np.array([0, 1], np.int32), [len(first), len(other)])
    return InputRow(np.array(first + other, np.int32), segment_ids)


def pad_rows(rows: Sequence[Any], length: int, pad_id: int) -> Batch:
    """Pads rows, which have the fields of an `InputRow`, into a batch.

    The batch holds input_ids, input_mask and segment_ids, int32 [B, length] each.
    """
    batch = {name: np.zeros((len(rows), length), np.int32) for name in ROW_INPUTS}
    batch["input_ids"][:] = pad_id
    for number, row in enumerate(rows):
        batch["input_ids"][number, : len(row.ids)] = row.ids
        batch["input_mask"][number, : len(row.ids)] = 1
        batch["segment_ids"][number, : len(row.ids)] = row.segment_ids
    return batch
