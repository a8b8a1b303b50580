"""What the methods of a model return.

Shapes: L layers, N heads, T pieces of a text with [CLS] and [SEP], H hidden.
"""

from typing import NamedTuple

import numpy as np


class HiddenStates(NamedTuple):
    """The vectors of a text in every layer.

    Attributes:
        pieces: T strings.
        spans: of each piece (first character, end) in its text; None for [CLS] and [SEP].
        vectors: [L + 1, T, H] float32: the embedding output, then every layer.
    """

    pieces: tuple
    spans: tuple
    vectors: np.ndarray


class Attention(NamedTuple):
    """What every piece of a text attends to.

    Attributes:
        pieces, spans: as in `HiddenStates`.
        probabilities: [L, N, T, T] float32: from each piece (third axis) to all pieces.
    """

    pieces: tuple
    spans: tuple
    probabilities: np.ndarray


class Guess(NamedTuple):
    """A guess for a [MASK].

    Attributes:
        text: without the marks of its pieces.
        probability: that of its pieces one after the other, given that there are as many. Between
            guesses with different numbers of pieces it says which are surer, not which number is
            right.
        pieces: a tuple of strings.
    """

    text: str
    probability: float
    pieces: tuple


class Neighbour(NamedTuple):
    """A piece of the vocabulary that resembles a word.

    Attributes:
        piece: as the vocabulary has it.
        similarity: the cosine of the angle between their vectors.
    """

    piece: str
    similarity: float


class Classified(NamedTuple):
    """A text's class.

    Attributes:
        label: the most probable class; of a model with several labels a text a tuple of those above
            0.5; of a regression the score.
        probabilities: class -> its probability; empty for a regression.
    """

    label: str | tuple | float
    probabilities: dict


class FoundEntity(NamedTuple):
    """A part of a text that has a name.

    Attributes:
        text: the part.
        kind: of the name, for example "PS".
        start, end: its first character, and the one after its last.
        probability: the mean of those of its tags.
    """

    text: str
    kind: str
    start: int
    end: int
    probability: float


class Tagged(NamedTuple):
    """A text's entities, and the tag of each of its units (characters or words, as trained).

    Attributes:
        entities: of `FoundEntity`s, in order.
        units: (first character, end) of each unit.
        tags: of each unit "B-X", "I-X" or "O".
        probabilities: of each tag.
    """

    entities: tuple
    units: tuple
    tags: tuple
    probabilities: tuple


class FoundAnswer(NamedTuple):
    """A part of a text that may answer a question; "" at None means that none does.

    Attributes:
        text: the part.
        start, end: its first character, and the one after its last.
        probability: among the candidates.
    """

    text: str
    start: int | None
    end: int | None
    probability: float


class Answered(NamedTuple):
    """The answer to a question about a text, and the other candidates.

    Attributes:
        answer: a `FoundAnswer`.
        candidates: of `FoundAnswer`s, the best first.
    """

    answer: FoundAnswer
    candidates: tuple


class Chosen(NamedTuple):
    """The option that answers a multiple-choice question.

    Attributes:
        option: its text.
        index: its number among the options, from 0.
        probabilities: of each option.
    """

    option: str
    index: int
    probabilities: tuple
