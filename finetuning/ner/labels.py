"""Converts tags of units to labels of tokens by the tokenizer's offsets, and scores back to tags.

Shapes: U units of a sentence, P tokens (pieces) of a sentence, T tokens of a window with [CLS] and
[SEP], C classes, B windows of a batch.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bert_common.errors import InputError
from finetuning.inputs import Batch, InputRow
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from finetuning.ner.data import Sentence


class Alignment(NamedTuple):
    """A map between the units and the tokens of a sentence.

    A unit belongs to the first token that shares a character with it.
    """

    ids: np.ndarray  # [P] int32
    owners: list[int]  # for each of U units the index of the token that it belongs to; -1 for none
    # For each of P tokens the first unit that belongs to it or, if none does (a later token of a
    # word, a later jamo of a syllable), the first unit that shares a character with it; -1 for none
    # (a word-end marker, a space).
    units: list[int]
    begins: list[bool]  # for each of P tokens whether that unit belongs to it


class SentenceWindow(NamedTuple):
    """Tokens of a sentence between [CLS] and [SEP]."""

    row: InputRow  # [T]
    sentence: int  # the index of the sentence
    kept: slice  # the positions that count; each token counts in one window only
    label_ids: np.ndarray  # [T] int32
    label_weights: np.ndarray  # [T] float32: 0 where no tag is to be predicted


# How others write the tag B-X: Naver's models end with the place.
_TAG = re.compile(r"(?P<place>[BI])[-_](?P<kind>.+)|(?P<other>.+)[-_](?P<last>[BI])")


def iob2_tag(name: str) -> str | None:
    """Returns a tag, also if spelled "X-B", "X_B" or "B_X", as "B-X", "I-X" or "O"; else None."""
    if name in ("O", "-"):
        return "O"
    match = _TAG.fullmatch(name)
    if match is None:
        return None
    return f"{match['place'] or match['last']}-{match['kind'] or match['other']}"


def odd_tags(names: Sequence[str]) -> list[str]:
    """Returns the names that are not tags, and each I-X without a B-X to begin the entity."""
    return [
        name
        for name in names
        if not re.fullmatch("O|[BI]-.+", name) or (name[0] == "I" and f"B{name[1:]}" not in names)
    ]


def check_tags(names: Sequence[str], source: str) -> None:
    """Raises an `InputError` if classes are not tags, as they may be in models of transformers."""
    odd = odd_tags(names)
    if odd or "O" not in names:
        raise InputError(
            "to find entities, the classes must be O and, of each kind X, B-X and perhaps I-X. "
            f"Received: {source} with {', '.join(odd or names)}"
        )


def align(tokenizer: TokenizerInterface, sentence: "Sentence") -> Alignment:
    """Makes the `Alignment` of a `data.Sentence`, even if the tokenizer normalizes its text."""
    ids, spans = tokenizer.encode_with_offsets(sentence.text)
    unit_at = [-1] * len(sentence.text)
    for unit, (start, end) in enumerate(sentence.units):
        unit_at[start:end] = [unit] * (end - start)
    owners, units, begins = [-1] * len(sentence.units), [], []
    for piece, (start, end) in enumerate(spans):
        touched = [unit for unit in unit_at[start:end] if unit >= 0]
        owned = [unit for unit in touched if owners[unit] < 0]
        for unit in owned:
            owners[unit] = piece
        units.append((owned or touched or [-1])[0])
        begins.append(bool(owned))
    return Alignment(np.array(ids, np.int32), owners, units, begins)


def piece_tags(alignment: Alignment, tags: Sequence[str]) -> list[str]:
    """Converts U tags of units to P tags of tokens; "O" if a token has no unit."""
    converted = []
    for unit, begins in zip(alignment.units, alignment.begins, strict=True):
        tag = tags[unit] if unit >= 0 else "O"
        converted.append(tag if begins else _continuation(tag))
    return converted


def unit_tags(alignment: Alignment, tags: Sequence[str]) -> list[str]:
    """Converts P tags of tokens back to U tags of units.

    If several units belong to a token, those after the first continue its entity: B-X, I-X, I-X.
    """
    converted = []
    for unit, piece in enumerate(alignment.owners):
        tag = tags[piece] if piece >= 0 else None
        if piece >= 0 and alignment.units[piece] != unit:
            tag = _continuation(tag)
        converted.append(tag)
    return _fill_gaps(converted)


def _continuation(tag):
    return "I" + tag[1:] if tag[0] == "B" else tag


def _fill_gaps(tags):
    """Replaces None by the next tag if that is I-X, else by O."""
    filled, after = list(tags), "O"
    for place in range(len(filled) - 1, -1, -1):
        if filled[place] is None:
            filled[place] = after if after[0] == "I" else "O"
        after = filled[place]
    return filled


def make_windows(
    tokenizer: TokenizerInterface,
    alignments: Sequence[Alignment],
    sentences: "Sequence[Sentence]",
    tags: Sequence[str],
    max_length: int,
    overlap: bool = False,
) -> list[SentenceWindow]:
    """Cuts sentences into windows for the model; most sentences fit into one.

    Args:
        tags: the tags of the classes.
        max_length: the largest T, at least 3.
        overlap: whether the windows of a sentence overlap by half, as for prediction; each token
            counts in the window that shows more of its context. Otherwise they are adjacent, as
            for training.

    Returns:
        The windows in the order of the sentences; none for a sentence without tokens.
    """
    classes = {tag: number for number, tag in enumerate(tags)}
    windows = []
    for number, (alignment, sentence) in enumerate(zip(alignments, sentences, strict=True)):
        count = len(alignment.ids)
        labels = np.array([classes[tag] for tag in piece_tags(alignment, sentence.tags)], np.int32)
        weights = np.array([unit >= 0 for unit in alignment.units], np.float32)
        for start, end, first, last in window_bounds(count, max_length - 2, overlap):
            row = InputRow(
                np.array([tokenizer.cls_id, *alignment.ids[start:end], tokenizer.sep_id], np.int32),
                np.zeros(end - start + 2, np.int32),
            )
            kept = slice(first - start + 1, last - start + 1)  # [CLS] is at position 0
            label_ids = np.full(len(row.ids), classes["O"], np.int32)
            label_weights = np.zeros(len(row.ids), np.float32)
            label_ids[kept], label_weights[kept] = labels[first:last], weights[first:last]
            windows.append(SentenceWindow(row, number, kept, label_ids, label_weights))
    return windows


def window_bounds(count: int, room: int, overlap: bool) -> list[tuple[int, int, int, int]]:
    """Computes where windows over `count` tokens begin and end, and which tokens count in each.

    With `overlap`, windows overlap by half. Returns (start, end, first token that counts, end of
    the tokens that count) for each window; each token counts once.
    """
    shared = room // 2 if overlap else 0
    starts = range(0, max(count - shared, min(count, 1)), room - shared)
    ends = [min(start + room, count) for start in starts]
    # Overlapping windows are split in the middle of their overlap.
    borders = [(start + end) // 2 for start, end in zip(starts[1:], ends[:-1], strict=True)]
    return list(zip(starts, ends, [0, *borders], [*borders, count], strict=False))


def pad_labels(windows: Sequence[SentenceWindow], length: int) -> Batch:
    """Pads the labels of a batch, whose rows `finetuning.inputs.pad_rows` pads.

    Returns token_label_ids int32 and token_label_weights float32, each [B, length].
    """
    labels = np.zeros((len(windows), length), np.int32)
    weights = np.zeros((len(windows), length), np.float32)
    for number, window in enumerate(windows):
        labels[number, : len(window.row.ids)] = window.label_ids
        weights[number, : len(window.row.ids)] = window.label_weights
    return {"token_label_ids": labels, "token_label_weights": weights}


def decode(scores: np.ndarray, tags: Sequence[str]) -> np.ndarray:
    """Finds the valid sequence of tags with the highest sum of scores (Viterbi's algorithm).

    `scores` [P, C] are logits or log probabilities; the result, [P] indices of classes, is the same
    for both. I-X follows only B-X or I-X.
    """
    kinds = np.array([tag[1:] for tag in tags])
    inside = np.array([tag[0] == "I" for tag in tags])
    # The score of each transition [from, to].
    transitions = np.where(inside & (kinds[:, None] != kinds), -np.inf, 0.0)  # [C, C]
    # The score of the best sequence that ends in each tag [C], and the tag before it at each place.
    best, before = np.where(inside, -np.inf, 0.0), []
    for place, row in enumerate(np.asarray(scores, np.float64)):
        if place:
            sums = best[:, None] + transitions  # [C, C]
            best = sums.max(axis=0)
            before.append(sums.argmax(axis=0))
        best = best + row
    path = [best.argmax()]
    for choices in reversed(before):
        path.append(choices[path[-1]])
    return np.array(path[::-1], np.int32)[: len(scores)]  # empty without tokens
