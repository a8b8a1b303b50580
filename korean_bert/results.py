"""What the methods of a model return.

Shapes: L layers, N heads, T pieces of a text with [CLS] and [SEP], H hidden.
"""

from typing import NamedTuple

import numpy as np


class HiddenStates(NamedTuple):
    """The vectors of a text in every layer."""

    pieces: tuple  # T strings
    spans: tuple  # of each piece (first character, end) in its text; None for [CLS] and [SEP]
    vectors: np.ndarray  # [L + 1, T, H] float32: the embedding output, then every layer


class Attention(NamedTuple):
    """What every piece of a text attends to."""

    pieces: tuple  # as in `HiddenStates`
    spans: tuple
    probabilities: np.ndarray  # [L, N, T, T] float32: from each piece (third axis) to all pieces


class Guess(NamedTuple):
    """A guess for a [MASK]."""

    text: str  # without the marks of its pieces
    # That of its pieces one after the other, given that there are as many; between guesses with
    # different numbers of pieces it says which are surer, not which number is right.
    probability: float
    pieces: tuple


class Neighbour(NamedTuple):
    """A piece of the vocabulary that resembles a word."""

    piece: str
    similarity: float  # the cosine of the angle between their vectors


class Classified(NamedTuple):
    """A text's class."""

    # The most probable class; of a model with several labels a text a tuple of those above 0.5; of
    # a regression the score.
    label: str | tuple | float
    probabilities: dict  # class -> its probability; empty for a regression


class FoundEntity(NamedTuple):
    """A part of a text that has a name."""

    text: str
    kind: str
    start: int  # its first character
    end: int
    probability: float  # the mean of those of its tags


class Tagged(NamedTuple):
    """A text's entities, and the tag of each of its units (characters or words, as trained)."""

    entities: tuple  # of `FoundEntity`s, in order
    units: tuple  # (first character, end) of each unit
    tags: tuple  # of each unit "B-X", "I-X" or "O"
    probabilities: tuple  # of each tag


class FoundAnswer(NamedTuple):
    """A part of a text that may answer a question; "" at None means that none does."""

    text: str
    start: int | None  # its first character
    end: int | None
    probability: float  # among the candidates


class Answered(NamedTuple):
    """The answer to a question about a text, and the other candidates."""

    answer: FoundAnswer
    candidates: tuple  # of `FoundAnswer`s, the best first


class Chosen(NamedTuple):
    """The option that answers a multiple-choice question."""

    option: str
    index: int
    probabilities: tuple  # of each option
