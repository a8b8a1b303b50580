"""Declares what a fine-tuned model predicts for a text."""

from typing import NamedTuple


class Classified(NamedTuple):
    """The class or the score predicted for a text.

    Attributes:
        label: the most probable class; for a multi-label model, a tuple of the classes above 0.5;
            for regression, the score.
        probabilities: class -> its probability; empty for regression.
    """

    label: str | tuple[str, ...] | float
    probabilities: dict[str, float]


class FoundEntity(NamedTuple):
    """A named entity found in a text.

    Attributes:
        text: the entity's part of the text.
        kind: its kind, for example "PS".
        start, end: its first character, and the one after its last.
        probability: the mean of its tags' probabilities.
    """

    text: str
    kind: str
    start: int
    end: int
    probability: float


class Tagged(NamedTuple):
    """The entities of a text and the tags of its units (characters or words, as trained).

    Attributes:
        entities: `FoundEntity`s, in order.
        units: (first character, end) of each unit.
        tags: "B-X", "I-X" or "O" for each unit.
        probabilities: the probability of each tag.
    """

    entities: tuple[FoundEntity, ...]
    units: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]


class FoundAnswer(NamedTuple):
    """A part of a text that may answer a question; "" at None means that there is no answer.

    Attributes:
        text: the part.
        start, end: its first character, and the one after its last.
        probability: its probability among the candidates.
    """

    text: str
    start: int | None
    end: int | None
    probability: float


class Answered(NamedTuple):
    """The answer to a question about a text, and the other candidates.

    Attributes:
        answer: a `FoundAnswer`.
        candidates: `FoundAnswer`s, the best first.
    """

    answer: FoundAnswer
    candidates: tuple[FoundAnswer, ...]


class Chosen(NamedTuple):
    """The option that answers a multiple-choice question.

    Attributes:
        option: its text.
        index: its number among the options, from 0.
        probabilities: the probability of each option.
    """

    option: str
    index: int  # type: ignore[assignment]  # instead of the tuple's method
    probabilities: tuple[float, ...]


# The prediction for a text; the model's task decides which class it has.
Prediction = Classified | Tagged | Answered | Chosen
