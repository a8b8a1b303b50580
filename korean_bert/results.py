"""Defines what the methods of a model return.

Shapes: L layers, N heads, T tokens of a text with [CLS] and [SEP], H hidden.
"""

from typing import NamedTuple

import numpy as np

from finetuning.results import Answered, Chosen, Classified, FoundAnswer, FoundEntity, Tagged

__all__ = [
    "Answered",
    "Attention",
    "Chosen",
    "Classified",
    "FoundAnswer",
    "FoundEntity",
    "Guess",
    "HiddenStates",
    "Hit",
    "Neighbour",
    "Tagged",
]


class HiddenStates(NamedTuple):
    """The vectors of a text in every layer.

    Attributes:
        pieces: the tokens, T strings.
        spans: (first character, end) of each token in its text; None for [CLS] and [SEP].
        vectors: [L + 1, T, H] float32: the embedding output, then every layer.
    """

    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int] | None, ...]
    vectors: np.ndarray


class Attention(NamedTuple):
    """What every token of a text attends to.

    Attributes:
        pieces, spans: as in `HiddenStates`.
        probabilities: [L, N, T, T] float32: from each token (third axis) to all tokens.
    """

    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int] | None, ...]
    probabilities: np.ndarray


class Guess(NamedTuple):
    """A guess for a [MASK].

    Attributes:
        text: the guessed text, without word markers.
        probability: the joint probability of its tokens, given their number. Between guesses with
            different numbers of tokens, it tells which are surer, not which number is right.
        pieces: the tokens.
    """

    text: str
    probability: float
    pieces: tuple[str, ...]


class Neighbour(NamedTuple):
    """A token of the vocabulary that resembles a word.

    Attributes:
        piece: the token, as written in the vocabulary.
        similarity: the cosine of the angle between their vectors.
    """

    piece: str
    similarity: float


class Hit(NamedTuple):
    """A text that a search found.

    Attributes:
        place: the text's number in the corpus, from 0.
        score: the cosine of the angle between its vector and the query's, or the score of another
            search method.
        text: the text; None if the corpus is given as vectors.
    """

    place: int
    score: float
    text: str | None
