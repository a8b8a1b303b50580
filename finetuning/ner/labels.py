"""Turns tags of units into labels of pieces through the tokenizer's offsets, and back.

Shapes: U units of a sentence, P pieces of it, T pieces of a window with [CLS] and [SEP],
C classes, B windows of a batch.
"""

from typing import NamedTuple

import numpy as np

from finetuning.inputs import Row
from finetuning.metrics import score_tags
from finetuning.ner.decoding import decode


class Alignment(NamedTuple):
    """Which pieces of a sentence stand for which units.

    A unit belongs to the first piece that has a character of it.
    """

    ids: np.ndarray  # [P] int32
    owners: list  # U pieces that the units belong to, -1 where no piece is
    # P units: the first that belongs to the piece, or, if none does (a later piece of a word, a
    # later jamo of a syllable), the first that it has a character of; -1: none, as a word's end
    # marker or a space.
    units: list
    begins: list  # P: whether that unit belongs to the piece


class Window(NamedTuple):
    """Pieces of a sentence between [CLS] and [SEP]."""

    row: Row  # [T]
    sentence: int  # the sentence's number
    kept: slice  # the places of the row that count: windows that overlap share the pieces out
    label_ids: np.ndarray  # [T] int32
    label_weights: np.ndarray  # [T] float32: 0 where nothing is to be told


def align(tokenizer, sentence):
    """Finds the pieces of each unit, whatever the tokenizer normalised.

    Args:
        tokenizer: one of those of `tokenization`.
        sentence: a `finetuning.ner.data.Sentence`.

    Returns:
        An `Alignment`.
    """
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


def piece_tags(alignment, tags):
    """The tags of the pieces: each has that of the first unit which belongs to it.

    Args:
        alignment: an `Alignment`.
        tags: U tags.

    Returns:
        P tags, "O" where a piece has no unit.
    """
    found = []
    for unit, begins in zip(alignment.units, alignment.begins, strict=True):
        tag = tags[unit] if unit >= 0 else "O"
        found.append(tag if begins else _going_on(tag))
    return found


def unit_tags(alignment, found):
    """The tags of the units, from those of the pieces: the way back.

    After its first unit a piece goes on: B-X, I-X, I-X.

    Args:
        alignment: an `Alignment`.
        found: P tags.

    Returns:
        U tags.
    """
    tags = []
    for unit, piece in enumerate(alignment.owners):
        if piece < 0:
            tags.append(None)
        else:
            tags.append(found[piece] if alignment.units[piece] == unit else _going_on(found[piece]))
    return _fill(tags)


def character_tags(sentence, tags):
    """The tags of all characters, those between units too, as KLUE's files have them.

    Args:
        sentence: a `finetuning.ner.data.Sentence`.
        tags: U tags.

    Returns:
        A tag for each character of the text: a space is inside where an entity goes on after it.
    """
    found = [None] * len(sentence.text)
    for (start, end), tag in zip(sentence.units, tags, strict=True):
        found[start:end] = [tag] + [_going_on(tag)] * (end - start - 1)
    return _fill(found)


def _going_on(tag):
    return "I" + tag[1:] if tag[0] == "B" else tag


def _fill(tags):
    """Puts I-X for None where X goes on after it, else O."""
    filled, after = list(tags), "O"
    for place in range(len(filled) - 1, -1, -1):
        if filled[place] is None:
            filled[place] = after if after[0] == "I" else "O"
        after = filled[place]
    return filled


def make_windows(tokenizer, alignments, sentences, tags, max_length, overlap=False):
    """Cuts sentences into what the model is given; most are one window.

    Args:
        tokenizer: that of the alignments, with [CLS] and [SEP].
        alignments: an `Alignment` for each sentence.
        sentences: `Sentence`s.
        tags: the tags of the classes.
        max_length: the largest T, at least 3.
        overlap: whether the windows of a sentence overlap by half, and each piece counts in the
            one that shows more of what is around it: for prediction. Without it they follow each
            other: for training.

    Returns:
        A list of `Window`s in the order of the sentences; none for a sentence without pieces.
    """
    classes = {tag: number for number, tag in enumerate(tags)}
    windows = []
    for number, (alignment, sentence) in enumerate(zip(alignments, sentences, strict=True)):
        count = len(alignment.ids)
        labels = np.array([classes[tag] for tag in piece_tags(alignment, sentence.tags)], np.int32)
        weights = np.array([unit >= 0 for unit in alignment.units], np.float32)
        for start, end, first, last in cut(count, max_length - 2, overlap):
            row = Row(
                np.array([tokenizer.cls_id, *alignment.ids[start:end], tokenizer.sep_id], np.int32),
                np.zeros(end - start + 2, np.int32),
            )
            kept = slice(first - start + 1, last - start + 1)  # [CLS] is place 0
            label_ids = np.full(len(row.ids), classes["O"], np.int32)
            label_weights = np.zeros(len(row.ids), np.float32)
            label_ids[kept], label_weights[kept] = labels[first:last], weights[first:last]
            windows.append(Window(row, number, kept, label_ids, label_weights))
    return windows


def cut(count, room, overlap):
    """Where windows begin and end, and which pieces count in each.

    Args:
        count: of pieces.
        room: how many a window has place for.
        overlap: whether windows overlap by half.

    Returns:
        A list of (start, end, first that counts, one after the last): each piece counts once.
    """
    shared = room // 2 if overlap else 0
    starts = range(0, max(count - shared, min(count, 1)), room - shared)
    ends = [min(start + room, count) for start in starts]
    # The middle of what two windows share.
    borders = [(start + end) // 2 for start, end in zip(starts[1:], ends[:-1], strict=True)]
    return list(zip(starts, ends, [0, *borders], [*borders, count], strict=False))


def pad_labels(windows, length):
    """The labels of a batch, to go with `finetuning.inputs.pad_rows`.

    Args:
        windows: B of them.
        length: of the batch, no shorter than the longest row.

    Returns:
        A dict of [B, length]: token_label_ids int32, token_label_weights float32.
    """
    labels = np.zeros((len(windows), length), np.int32)
    weights = np.zeros((len(windows), length), np.float32)
    for number, window in enumerate(windows):
        labels[number, : len(window.row.ids)] = window.label_ids
        weights[number, : len(window.row.ids)] = window.label_weights
    return {"token_label_ids": labels, "token_label_weights": weights}


def piece_scores(alignments, windows, logits, classes):
    """The logits of each sentence's pieces, from its windows.

    Args:
        alignments: an `Alignment` for each sentence.
        windows: what `make_windows` made of them.
        logits: for each window [at least T, C].
        classes: C.

    Returns:
        For each sentence [P, C].
    """
    parts = [[np.zeros((0, classes))] for _ in alignments]
    for window, scores in zip(windows, logits, strict=True):
        parts[window.sentence].append(scores[window.kept])
    return [np.concatenate(each) for each in parts]


def decode_pieces(alignment, scores, tags):
    """The tags that a model gives the pieces of a sentence.

    Args:
        alignment: the sentence's.
        scores: [P, C], as `piece_scores` gives them.
        tags: the tags of the classes.

    Returns:
        [P] numbers of classes, that of "O" where no unit belongs to the piece.
    """
    # The pieces that no unit belongs to have no say.
    begins = np.array(alignment.begins, bool)
    found = np.full(len(begins), tags.index("O"), np.int32)
    found[begins] = decode(scores[begins], tags)
    return found


def tags_of_scores(alignment, scores, tags):
    """What a model says of every unit of a sentence.

    Args:
        alignment, scores, tags: as for `decode_pieces`.

    Returns:
        U tags, valid IOB2.
    """
    return unit_tags(alignment, [tags[i] for i in decode_pieces(alignment, scores, tags)])


def predict_tags(alignments, windows, logits, tags):
    """What a model says of every unit.

    Args:
        alignments, windows, logits: as for `piece_scores`.
        tags: the tags of the classes.

    Returns:
        For each sentence its U tags, valid IOB2.
    """
    scores = piece_scores(alignments, windows, logits, len(tags))
    return [tags_of_scores(*each, tags) for each in zip(alignments, scores, strict=True)]


def ceiling(tokenizer, sentences, tags):
    """What the metrics would be if every piece were tagged right: the limit a vocabulary sets.

    Args:
        tokenizer: one of those of `tokenization`.
        sentences: `Sentence`s.
        tags: the tags of the classes.

    Returns:
        As `finetuning.metrics.score_tags`.
    """
    predictions = []
    for sentence in sentences:
        alignment = align(tokenizer, sentence)
        predictions.append(unit_tags(alignment, piece_tags(alignment, sentence.tags)))
    return score_tags([list(sentence.tags) for sentence in sentences], predictions, tags)
