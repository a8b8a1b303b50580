"""Makes examples with the same text and the same masked spans for all vocabularies.

Examples are defined by characters. An example is a passage of whole eojeols (the words between
spaces) in which spans of characters are masked, the smallest spans that all vocabularies write as
whole tokens. Only the ends of spans depend on the tokens, of all vocabularies together.

Shapes: T tokens of a row, P predictions.
"""

import functools
import unicodedata
from pathlib import Path
from typing import NamedTuple

MASKED = 0.15  # the minimum share of an example's characters, as BERT masks tokens


class Span(NamedTuple):
    """Characters of one eojeol of an example."""

    eojeol: int  # the eojeol's number
    start: int
    end: int


class Cuts(dict):
    """The token ids of each eojeol in one vocabulary; eojeols are tokenized when first needed.

    Attributes:
        places: eojeol -> its `clean_places`.
    """

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer, self.places = tokenizer, {}

    def __missing__(self, eojeol):
        ids, offsets = self.tokenizer.encode_with_offsets(eojeol)
        self.places[eojeol] = clean_places(tuple(offsets), len(eojeol))
        self[eojeol] = ids = tuple(ids)
        return ids

    def knows(self, eojeol):
        """Returns True if an eojeol is tokenized without [UNK]."""
        return self.tokenizer.unk_id not in self[eojeol]

    def between(self, eojeol, start, end):
        """Returns the index of a span's first token, and the index after its last token."""
        return self.places[eojeol][start], self.places[eojeol][end]

    def pieces(self, eojeols, span):
        """Returns the token ids of a `Span` of an example."""
        eojeol = eojeols[span.eojeol]
        return self[eojeol][slice(*self.between(eojeol, span.start, span.end))]


@functools.cache  # many eojeols have the same offsets
def clean_places(offsets, length):
    """Finds where an eojeol can be split without splitting a token.

    Args:
        offsets: the start and end of each token in characters. The jamo of a syllable share its
            span, and spans may be empty.
        length: the length of the eojeol.

    Returns:
        A dict: characters before the split -> tokens before it, including 0 and `length`. Positions
        with an empty span are excluded, as its token could be on either side.
    """
    places = {0: 0}
    for place in range(1, length):
        sides = [(end <= place) - (place <= start) for start, end in offsets]
        if all(sides):  # 0 means that a token crosses the place, or is empty and there
            places[place] = sides.count(1)
    return {**places, length: len(offsets)}


class SharedSpans(dict):
    """The smallest spans of each eojeol whose ends are clean places in all vocabularies.

    Each span has at least one token in every vocabulary, and together they cover the eojeol. They
    are pairs of start and end characters, computed when first needed.

    Args:
        all_cuts: a `Cuts` for every vocabulary; each must have a token for every requested eojeol.
    """

    def __init__(self, all_cuts):
        super().__init__()
        self.all_cuts = all_cuts

    def __missing__(self, eojeol):
        spans, start = [], 0
        for cuts in self.all_cuts:
            cuts[eojeol]  # computes its places
        places = [cuts.places[eojeol] for cuts in self.all_cuts]
        for place in range(1, len(eojeol) + 1):
            if all(place in clean and clean[start] < clean[place] for clean in places):
                spans.append((start, place))
                start = place
        if start < len(eojeol):  # the end has no token in some vocabulary
            spans[-1:] = [(spans[-1][0] if spans else 0, len(eojeol))]
        self[eojeol] = spans = tuple(spans)
        return spans


class Limits(NamedTuple):
    """The maximum sizes of some examples in one vocabulary."""

    length: int  # tokens, including [CLS] and [SEP]
    predictions: int  # masked tokens


class Example(NamedTuple):
    """A passage with characters to predict."""

    eojeols: list[str]
    masked: list[Span]  # ascending


def masked_characters(examples):
    """Returns the number of characters to predict in examples."""
    return sum(span.end - span.start for example in examples for span in example.masked)


def read_eojeols(path):
    """Reads documents of a UTF-8 text with one sentence per line, as lists of NFC eojeols."""
    documents = [[]]
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            documents.append([])
        else:
            documents[-1] += unicodedata.normalize("NFC", line).split()
    return [document for document in documents if document]


def passages(documents, all_cuts, characters):
    """Splits documents into passages of whole eojeols.

    Args:
        documents: lists of eojeols.
        all_cuts: a `Cuts` for every vocabulary.
        characters: the maximum length of a passage, counting a space before each eojeol.

    Yields:
        Lists of eojeols. Eojeols that are longer than a passage, or have no token in some
        vocabulary (an invisible character), are omitted.
    """
    for document in documents:
        passage, used = [], 0
        for eojeol in document:
            size = len(eojeol) + 1
            if size > characters or not all(cuts[eojeol] for cuts in all_cuts):
                continue
            if used + size > characters:
                yield passage
                passage, used = [], 0
            passage.append(eojeol)
            used += size
        if passage:
            yield passage


def choose_masked(eojeols, spans, rng):
    """Chooses the spans of a passage to predict.

    Spans are drawn in random order until they have enough characters, so the length of a span does
    not affect whether it is chosen.

    Args:
        eojeols: the passage.
        spans: `SharedSpans`; spans of an eojeol with [UNK] in some vocabulary are not chosen.
        rng: a `random.Random`.

    Returns:
        An `Example`.
    """
    wanted = MASKED * sum(map(len, eojeols))
    known = [
        Span(number, start, end)
        for number, eojeol in enumerate(eojeols)
        if all(cuts.knows(eojeol) for cuts in spans.all_cuts)
        for start, end in spans[eojeol]
    ]
    masked, characters = [], 0
    for span in rng.sample(known, len(known)):
        if characters >= wanted:
            break
        masked.append(span)
        characters += span.end - span.start
    return Example(eojeols, sorted(masked))


def limits_of(examples, cuts):
    """Returns the `Limits` of examples in a vocabulary."""
    return Limits(
        2 + max(sum(len(cuts[eojeol]) for eojeol in example.eojeols) for example in examples),
        max(sum(len(cuts.pieces(e.eojeols, span)) for span in e.masked) for e in examples),
    )


def row(example, cuts, limit, asked=None):
    """Returns the features of an example in one vocabulary.

    Args:
        example: an `Example`.
        cuts, limit: the vocabulary's `Cuts` and `Limits`.
        asked: None to predict all tokens of the masked spans at once; a number k to predict only
            token k of each span, showing the tokens before it.

    Returns:
        A dict of lists: [T] input_ids, input_mask, segment_ids; [P] masked_lm_positions,
        masked_lm_ids, masked_lm_weights.
    """
    tokenizer = cuts.tokenizer
    starts, ids = [], [tokenizer.cls_id]  # the position of each eojeol's first token
    for eojeol in example.eojeols:
        starts.append(len(ids))
        ids += cuts[eojeol]
    ids.append(tokenizer.sep_id)
    positions, labels = [], []
    for span in example.masked:
        first, end = cuts.between(example.eojeols[span.eojeol], span.start, span.end)
        places = range(starts[span.eojeol] + first, starts[span.eojeol] + end)
        wanted = places if asked is None else places[asked : asked + 1]
        positions += wanted
        labels += [ids[place] for place in wanted]
        for place in places[asked or 0 :]:
            ids[place] = tokenizer.mask_id
    length, room = limit
    padding, missing = length - len(ids), room - len(labels)
    return {
        "input_ids": ids + [tokenizer.pad_id] * padding,
        "input_mask": [1] * len(ids) + [0] * padding,
        "segment_ids": [0] * length,
        "masked_lm_positions": positions + [0] * missing,
        "masked_lm_ids": labels + [0] * missing,
        "masked_lm_weights": [1] * len(labels) + [0] * missing,
    }


def unknown_share(documents, cuts):
    """Returns the share of eojeols with [UNK] in a text."""
    eojeols = [eojeol for document in documents for eojeol in document]
    return sum(not cuts.knows(eojeol) for eojeol in eojeols) / len(eojeols)
