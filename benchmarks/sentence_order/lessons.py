"""Declares lessons, the parts of a training, each with the kinds of its rows."""

import dataclasses
import json

# The kinds of sequences that a lesson mixes.
KINDS = {
    "natural": "pairs of documents with two sentences or more, labelled by their order",
    "single": "documents of one sentence, for their masked words alone: they have no order",
}


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A part of a training."""

    updates: int
    shares: dict  # a name of KINDS -> its share of the tokens; the shares add up to 1
    rate: float = 1.0  # the factor of the learning rate

    def __post_init__(self):
        assert set(self.shares) <= set(KINDS) and abs(sum(self.shares.values()) - 1) < 1e-6


def read_lessons(path):
    """Reads a list of `Lesson`s from a JSON list of objects with their fields."""
    with open(path, encoding="utf-8") as file:
        return [Lesson(**row) for row in json.load(file)]
