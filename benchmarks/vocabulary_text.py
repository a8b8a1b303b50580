"""What benchmarks/vocabulary.py lets models read: the same text, the same words masked, any pieces.

Everything is decided by eojeols, the words between spaces, before there are pieces: an example is
a run of whole eojeols, and whole eojeols are masked. Pieces only set limits, those of all
vocabularies at once.

Shapes: T pieces of a row, P predictions.
"""

import functools
import random
import sys
import unicodedata
from pathlib import Path
from typing import NamedTuple

import numpy as np

from create_pretraining_data.record_format import RecordFormat
from tokenization.errors import InputError

MASKED = 0.15  # of an example's eojeols, as BERT masks pieces
TREATMENTS = {"mask": 0.8, "same": 0.1, "random": 0.1}  # of a masked eojeol in training, as BERT
LIMIT_QUANTILE = 0.99  # of examples that are as long in pieces as their characters let them be
LIMIT_STEP = 8  # lengths are multiples of it, for the sake of matrix products


class Cuts(dict):
    """The piece ids of each eojeol in one vocabulary, cut when it is first asked for."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    def __missing__(self, eojeol):
        self[eojeol] = ids = tuple(self.tokenizer.encode(eojeol))
        return ids

    def knows(self, eojeol):
        """Whether all of an eojeol can be written in pieces."""
        return self.tokenizer.unk_id not in self[eojeol]


class Limits(NamedTuple):
    """What an example may have at most in one vocabulary."""

    length: int  # pieces, [CLS] and [SEP] among them
    predictions: int  # masked pieces


class Example(NamedTuple):
    """A run of eojeols, of which some are to be found."""

    eojeols: list[str]
    masked: list[int]  # their numbers, ascending
    treatments: list[str]  # what stands in the place of each


def read_eojeols(path, without=frozenset()):
    """The documents of a text as lists of eojeols, composed (NFC).

    Args:
        path: UTF-8, one sentence a line, a blank line between documents.
        without: lines to leave out.
    """
    documents = [[]]
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            documents.append([])
        elif line not in without:
            documents[-1] += unicodedata.normalize("NFC", line).split()
    return [document for document in documents if document]


def spans(documents, all_cuts, characters, limits=None):
    """Cuts documents into runs of whole eojeols.

    Args:
        documents: lists of eojeols.
        all_cuts: a `Cuts` for every vocabulary.
        characters: of a run at most, a space before each eojeol counted.
        limits: `Limits` for every vocabulary; a run ends before it is too long for any of them.

    Yields:
        Lists of eojeols. One that by itself is too long, or that a vocabulary cuts to nothing (an
        invisible character), is left out.
    """
    room = [characters, *(limit.length - 2 for limit in limits or ())]
    for document in documents:
        span, used = [], [0] * len(room)
        for eojeol in document:
            pieces = [len(cuts[eojeol]) for cuts in all_cuts]
            sizes = [len(eojeol) + 1, *pieces][: len(room)]
            if not all(pieces) or any(map(int.__gt__, sizes, room)):
                continue
            if any(u + size > r for u, size, r in zip(used, sizes, room, strict=True)):
                yield span
                span, used = [], [0] * len(room)
            span.append(eojeol)
            used = [u + size for u, size in zip(used, sizes, strict=True)]
        if span:
            yield span


def choose_masked(span, all_cuts, rng, limits=None):
    """Chooses the eojeols of a span that are to be found.

    Args:
        span: a list of eojeols.
        all_cuts: a `Cuts` for every vocabulary; an eojeol that one of them does not know is not
            chosen.
        rng: a `random.Random`.
        limits: `Limits` for every vocabulary; an eojeol that has too many pieces for what is
            left of any of them is passed over.

    Returns:
        An `Example`, all of whose masked eojeols are to be shown as [MASK].
    """
    left = [limit.predictions for limit in limits] if limits else [len(span) * 1000] * len(all_cuts)
    count, masked = max(1, round(MASKED * len(span))), []
    for number in rng.sample(range(len(span)), len(span)):
        if len(masked) == count:
            break
        pieces = [len(cuts[span[number]]) for cuts in all_cuts]
        fits = all(map(int.__le__, pieces, left))
        if fits and all(cuts.knows(span[number]) for cuts in all_cuts):
            masked.append(number)
            left = [rest - used for rest, used in zip(left, pieces, strict=True)]
    return Example(span, sorted(masked), ["mask"] * len(masked))


def training_examples(documents, all_cuts, characters, limits, count, seed):
    """As many examples as asked for: passes over the text, each with other masks.

    Returns:
        A list of `Example`, the same for all vocabularies.
    """
    rng, examples = random.Random(seed), []
    texts = list(spans(documents, all_cuts, characters, limits))
    while len(examples) < count:
        rng.shuffle(texts)
        for span in texts[: count - len(examples)]:
            example = choose_masked(span, all_cuts, rng, limits)
            drawn = rng.choices(list(TREATMENTS), list(TREATMENTS.values()), k=len(example.masked))
            examples.append(example._replace(treatments=drawn))
    return examples


def find_limits(documents, all_cuts, characters):
    """What nearly all examples of so many characters need, for each vocabulary."""
    lengths, predictions, rng = [], [], random.Random(0)
    for span in spans(documents, all_cuts, characters):
        example = choose_masked(span, all_cuts, rng)
        lengths.append([2 + sum(len(cuts[e]) for e in span) for cuts in all_cuts])
        predictions.append([sum(len(cuts[span[n]]) for n in example.masked) for cuts in all_cuts])
    needed = np.quantile([lengths, predictions], LIMIT_QUANTILE, axis=1)  # [2, vocabularies]
    rounded = -(-needed // LIMIT_STEP) * LIMIT_STEP
    return [Limits(int(length), int(places)) for length, places in rounded.T]


def row(example, cuts, limit, rng=None, asked=None):
    """The features of an example in one vocabulary.

    Args:
        example: an `Example`.
        cuts: the vocabulary's `Cuts`.
        limit: its `Limits`.
        rng: a `random.Random` for the pieces of the treatment "random".
        asked: None to predict all pieces of the masked eojeols at once; a number k to predict
            the piece k of each of them, those before it shown.

    Returns:
        A dict of lists: [T] input_ids, input_mask, segment_ids; [P] masked_lm_positions,
        masked_lm_ids, masked_lm_weights.
    """
    tokenizer = cuts.tokenizer
    treatments = dict(zip(example.masked, example.treatments, strict=True))
    ids, positions, labels = [tokenizer.cls_id], [], []
    for number, eojeol in enumerate(example.eojeols):
        pieces = cuts[eojeol]
        if number in treatments:
            shown = pieces[: asked or 0]
            wanted = range(len(pieces)) if asked is None else range(asked, asked + 1)
            positions += [len(ids) + k for k in wanted if k < len(pieces)]
            labels += [pieces[k] for k in wanted if k < len(pieces)]
            hidden = {
                "mask": lambda piece: tokenizer.mask_id,
                "same": lambda piece: piece,
                "random": lambda piece: rng.randrange(tokenizer.vocab_size),
            }[treatments[number]]
            pieces = [*shown, *map(hidden, pieces[len(shown) :])]
        ids += pieces
    ids.append(tokenizer.sep_id)
    length, places = limit
    padding, missing = length - len(ids), places - len(labels)
    return {
        "input_ids": ids + [tokenizer.pad_id] * padding,
        "input_mask": [1] * len(ids) + [0] * padding,
        "segment_ids": [0] * length,
        "masked_lm_positions": positions + [0] * missing,
        "masked_lm_ids": labels + [0] * missing,
        "masked_lm_weights": [1] * len(labels) + [0] * missing,
    }


@functools.cache
def record_format(limit):
    """Records without sentence pairs."""
    return RecordFormat(*limit, sentence_label=False, token_boundary=False)


def read_reviews(path, count, all_cuts, length):
    """Pairs of the eojeols of a review and its label; a review is cut behind the same eojeol.

    Args:
        path: lines of id, document, label with tabs between them, behind one with their names.
        count: how many reviews, the first ones that have any text.
        all_cuts: a `Cuts` for every vocabulary.
        length: pieces of a review at most, in each vocabulary, [CLS] and [SEP] among them.

    Raises:
        InputError: a line of another form, or fewer reviews.
    """
    reviews, limits = [], [Limits(length, 0)] * len(all_cuts)
    lines = Path(path).read_text(encoding="utf-8").split("\n")[1:]
    for number, line in enumerate(lines, start=2):
        if len(reviews) == count:
            break
        fields = line.split("\t")
        if line and (len(fields) != 3 or fields[2] not in ("0", "1")):
            raise InputError(
                f"{path}, line {number}: must be id, document, 0 or 1, tabs between them. "
                f"Received: {line[:80]!r}"
            )
        if line:
            eojeols = unicodedata.normalize("NFC", fields[1]).split()
            first = next(spans([eojeols], all_cuts, sys.maxsize, limits), None)
            if first:
                reviews.append((first, int(fields[2])))
    if len(reviews) < count:
        raise InputError(f"{path} must hold {count} reviews with text. Received: {len(reviews)}")
    return reviews


class Shares(NamedTuple):
    """What a vocabulary does with a text."""

    pieces: float  # for each eojeol
    unknown: float  # the share of eojeols that hold [UNK]


def shares(documents, cuts):
    """Counts the eojeols of a text."""
    eojeols = [eojeol for document in documents for eojeol in document]
    pieces = sum(len(cuts[eojeol]) for eojeol in eojeols)
    unknown = sum(not cuts.knows(eojeol) for eojeol in eojeols)
    return Shares(pieces / len(eojeols), unknown / len(eojeols))
