"""Declares what a fine-tuned model predicts for a text."""

from typing import NamedTuple


class Classified(NamedTuple):
    """A text's class.

    Attributes:
        label: the most probable class; of a model with several labels a text a tuple of those above
            0.5; of a regression the score.
        probabilities: class -> its probability; empty for a regression.
    """

    label: str | tuple[str, ...] | float
    probabilities: dict[str, float]


class FoundEntity(NamedTuple):
    """A part of a text that has a name.

    Attributes:
        text: the part.
        kind: of the name, for example "PS".
        start, end: its first character, and the one after its last.
        probability: the mean of its tags' probabilities.
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

    entities: tuple[FoundEntity, ...]
    units: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]


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
    candidates: tuple[FoundAnswer, ...]


class Chosen(NamedTuple):
    """The option that answers a multiple-choice question.

    Attributes:
        option: its text.
        index: its number among the options, from 0.
        probabilities: of each option.
    """

    option: str
    index: int  # type: ignore[assignment]  # instead of the tuple's method
    probabilities: tuple[float, ...]


# Of a text; the model's task decides which class.
Prediction = Classified | Tagged | Answered | Chosen
